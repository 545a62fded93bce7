"""Prints the output of `probformer parse --json` for `mlm-ptb-pt` as a table of docs/results.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOUND = Path(__file__).parents[1] / "results/structure.json"
_MEASURES = {
    "uas": "UAS",
    "uuas": "UUAS",
    "uas_without_punctuation": "UAS without punctuation",
    "uuas_without_punctuation": "UUAS without punctuation",
}


def markdown(found: dict[str, Any]) -> str:
    rows = [["heads", *_MEASURES.values()], ["---"] * (1 + len(_MEASURES))]
    for way, shares in found["ways"].items():
        shown = f"{way}: {found['best_channel']}" if way == "best channel" else way
        rows.append([shown, *(f"{100 * shares[measure]:.1f}" for measure in _MEASURES)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    print(markdown(json.loads(FOUND.read_text(encoding="utf-8"))), end="")
