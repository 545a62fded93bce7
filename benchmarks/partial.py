"""Leave only a part of the heads of a CoNLL-U file, to train a parser on.

    python benchmarks/partial.py train.conllu few-heads.conllu --share 0.1
    python benchmarks/partial.py train.conllu few-sentences.conllu --share 0.1 --sentences

The first command keeps the head and the relation of each word with the given probability; the
others become "_". The second one keeps whole sentences, in a random order, until they have that
share of the words. Tags and everything else stay as they are.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from probformer.data.formats.conllu import Annotation, annotated
from probformer.data.readers import SentenceFile, lines_of
from probformer.data.sentence import Sentence
from probformer.errors import require, require_between
from probformer.runs.files import write_text
from probformer.sentinels import UNOBSERVED


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--share", type=float, required=True, help="the part that is left, 0 to 1")
    parser.add_argument("--sentences", action="store_true", help="keep whole sentences")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    require_between("--share", given.share, 0, 1)
    require(given.file != given.out, "the result needs a file of its own")
    sentences = list(SentenceFile(given.file, "conllu"))
    chance = np.random.default_rng(given.seed)
    choose = whole_sentences if given.sentences else single_words
    kept = choose(sentences, given.share, chance)
    write_text(given.out, partial(given.file, sentences, kept))
    words = sum(map(len, sentences))
    print(f"{sum(int(own.sum()) for own in kept):,} of {words:,} words keep their head")


def single_words(
    sentences: list[Sentence], share: float, chance: np.random.Generator
) -> list[np.ndarray]:
    """Of each sentence which words keep their head: drawn for each word."""
    return [chance.random(len(sentence)) < share for sentence in sentences]


def whole_sentences(
    sentences: list[Sentence], share: float, chance: np.random.Generator
) -> list[np.ndarray]:
    """The same by sentence: those that come first in a random order, up to the share of words."""
    kept = [np.zeros(len(sentence), bool) for sentence in sentences]
    rest = round(share * sum(map(len, sentences)))
    for at in chance.permutation(len(sentences)):
        if rest <= 0:
            break
        kept[at][:] = True
        rest -= len(kept[at])
    return kept


def partial(file: Path, sentences: list[Sentence], kept: list[np.ndarray]) -> str:
    """The file's text, with "_" for the heads and relations that are not kept."""
    annotations = []
    for sentence, own in zip(sentences, kept, strict=True):
        heads = sentence.heads or (UNOBSERVED,) * len(sentence)
        labels = sentence.columns["deprel"]
        annotations.append(
            Annotation(
                heads=[head if keep else UNOBSERVED for head, keep in zip(heads, own, strict=True)],
                labels=[label if keep else "_" for label, keep in zip(labels, own, strict=True)],
            )
        )
    lines, _ = annotated(lines_of(file), annotations)
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    main()
