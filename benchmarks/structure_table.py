"""What `probformer parse --json` found, as a table: python benchmarks/structure_table.py FILE"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

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
    print(markdown(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))), end="")
