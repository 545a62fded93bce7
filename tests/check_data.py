"""Real data, where a user has it: `make check-data DATA=folder`. Counts as published."""

import sys
from pathlib import Path

import conllu

from probformer.data.readers import read_conllu, read_text
from probformer.data.vocabulary import Vocabulary

PTB = {"train": 42_068, "valid": 3_370, "test": 3_761}
EWT = {"train": 12_543, "dev": 2_001, "test": 2_077}


def check(what: str, found: object, expected: object) -> bool:
    good = found == expected
    print(f"{'ok' if good else 'WRONG'}: {what}: {found}" + ("" if good else f", not {expected}"))
    return good


def check_ptb(folder: Path) -> bool:
    files = {split: read_text(folder / f"ptb.{split}.txt") for split in PTB}
    counts = {split: sum(1 for _ in file) for split, file in files.items()}
    vocabulary = Vocabulary.from_sentences(sentence.words for sentence in files["train"])
    return check("PTB sentences", counts, PTB) & check("PTB vocabulary", len(vocabulary), 10_000)


def check_ewt(folder: Path) -> bool:
    paths = {split: folder / f"en_ewt-ud-{split}.conllu" for split in EWT}
    sentences = {split: list(read_conllu(path)) for split, path in paths.items()}
    good = check("EWT sentences", {k: len(v) for k, v in sentences.items()}, EWT)
    train = sentences["train"]
    good &= check("EWT training words", sum(map(len, train)), 204_578)
    for column, count in (("xpos", 50), ("upos", 17)):
        tags = {tag for sentence in train for tag in sentence.columns[column]}
        good &= check(f"EWT {column} tags", len(tags), count)
    for split, path in paths.items():
        with path.open(encoding="utf-8") as file:
            same = all(
                [t["form"] for t in theirs if isinstance(t["id"], int)] == list(ours.words)
                and [t["head"] - 1 for t in theirs if isinstance(t["id"], int)] == list(ours.heads)
                for theirs, ours in zip(conllu.parse_incr(file), sentences[split], strict=True)
            )
        good &= check(f"EWT {split} equals the conllu package", same, True)
    return good


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1] else None
    checks = {"ptb_lm": check_ptb, "ud_ewt": check_ewt}
    results = []
    for name, run in checks.items():
        if root is None or not (root / name).is_dir():
            print(f"skipped: {name}: no such folder; give DATA=folder with {name}/ in it")
        else:
            results.append(run(root / name))
    raise SystemExit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
