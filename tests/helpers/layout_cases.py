"""Cases of the arc layout with expected positions, for the library and for the explorer's page.

`python tests/helpers/layout_cases.py` writes the file again, from the layout in Python.
"""

import json
import random
import sys
from pathlib import Path

from probformer.viz.arc_layout import Arc, Measure, lay_out
from probformer.viz.words import escaped, run_right_to_left

FILE = Path(__file__).parent.parent / "viz/arc_layout_cases.json"
_WORDS = [
    "a",
    "the",
    "dog",
    "sleeps",
    "internationalization",
    "中文",
    "(",
    "2",
    "\u202ex",
    "e\u0301",
]
_RIGHT_TO_LEFT = ["הילד", "ראה", "مرحبا", "(שלום", "2", ".", "dog", "𞤀𞤣"]
_LENGTHS = (1, 2, 3, 5, 8, 12, 20, 40)
_MEASURES = (
    {"gap": 2, "port": 2, "root": 4, "margin": 9, "limit": 60},
    {"gap": 16, "port": 9, "root": 34, "margin": 84, "limit": 1200},
    {"gap": 4.3, "port": 0, "root": 22, "margin": 34, "limit": 325},
)


def cases():
    """Sentences of all lengths, measures and directions, with up to two heads for a word.

    An arc is the places of dependent and head, and the width of its mark: half of the sentences
    have arcs with marks.
    """
    chance, of_marks = random.Random(0), random.Random(1)
    for n in _LENGTHS:
        for measure in _MEASURES:
            for vocabulary in (_WORDS, _RIGHT_TO_LEFT):
                words = [chance.choice(vocabulary) for _ in range(n)]
                pairs = [(i, j) for i in range(n) for j in [None, *range(n)] if i != j]
                arcs = chance.sample(pairs, min(len(pairs), chance.randrange(2 * n + 1)))
                yield {"words": words, "arcs": [(*arc, 0) for arc in arcs], "measure": measure}
                marked = [(*arc, of_marks.choice((0, 7.3, 40, 100))) for arc in arcs]
                yield {"words": words, "arcs": marked, "measure": measure}


def laid_out(case):
    """What Python and TypeScript must agree on: positions, the direction, and escaped words."""
    marks = {(i, j): mark for i, j, mark in case["arcs"]}
    measure = Measure(width=_width, mark=lambda arc: marks[arc[:2]], **case["measure"])
    rows = lay_out(case["words"], [Arc(i, j, 0.5) for i, j in marks], measure)
    return {
        "escaped": [escaped(word) for word in case["words"]],
        "rightToLeft": run_right_to_left(case["words"]),
        "rows": [
            {
                "width": row.width,
                "levels": row.levels,
                "places": [[word, x] for word, x in row.places.items()],
                "bows": [
                    [*bow.arc[:2], bow.level, bow.head, bow.dependent, bow.elsewhere]
                    for bow in row.bows
                ],
                "roots": [[arc.dependent, x] for arc, x in row.roots],
            }
            for row in rows
        ],
    }


def widths(case):
    """The widths of words for both languages: by code points, so that no font matters."""
    return [_width(word) for word in case["words"]]


def _width(word):
    return 7.5 * len(word)


def rounded(value):
    """Numbers to nine digits: the two languages may add in different orders."""
    if isinstance(value, float):
        return round(value, 9)
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return [*map(rounded, value)] if isinstance(value, list | tuple) else value


def main():
    lines = [
        json.dumps(rounded({**case, "widths": widths(case), "expected": laid_out(case)}))
        for case in cases()
    ]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
