"""A parser beside UDPipe 1 and spaCy, trained on the same files: accuracy and speed in one run.

    pip install ufal.udpipe spacy
    python benchmarks/parsers.py RUN… --data FOLDER --models FOLDER --json FILE

The data folder has train.conllu, dev.conllu and test.conllu. UDPipe and spaCy are trained if the
folder of models does not have them: UDPipe with its default settings for tagger and parser, spaCy
with its `efficiency` template, both without word vectors made elsewhere. On a whole treebank that
takes long. All get the words of the test split, and where sentences end; none gets tags. Seconds
are those from words in memory to heads, labels and tags in memory, the best of three passes.
"""

# UDPipe and spaCy are installed for this benchmark alone.
# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from probformer.data.attachment import attachment_scores, count_attachments, is_punctuation
from probformer.data.readers import SentenceFile
from probformer.data.sentence import Sentence
from probformer.errors import require
from probformer.runs.parsing import predict_parses
from probformer.runs.run_folder import load_run
from probformer.sentinels import ROOT

_PASSES = 3


@dataclass(frozen=True)
class Parsed:
    """The predictions for a sentence of n words."""

    heads: Sequence[int]
    labels: Sequence[str]
    upos: Sequence[str]
    xpos: Sequence[str]


Parser = Callable[[Sequence[Sentence]], list[Parsed]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--anchors", default="udpipe,spacy", help="which to train and compare")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    given.models.mkdir(parents=True, exist_ok=True)
    anchors = [name for name in given.anchors.split(",") if name]
    for name in anchors:
        require(name in ANCHORS, f"--anchors must be of {', '.join(ANCHORS)}, got {name}")
        train, _ = ANCHORS[name]
        if not (given.models / name).exists():
            train(given.data, given.models / name)
    sentences = list(SentenceFile(given.data / "test.conllu", "conllu"))
    loaders: dict[str, Callable[[], Parser]] = {str(run): _ours(run) for run in given.runs}
    loaders |= {name: ANCHORS[name][1](given.models / name) for name in anchors}
    rows = {name: measure(load, sentences) for name, load in loaders.items()}
    for name, row in rows.items():
        print(name, *(f"{key} {value:.4g}" for key, value in row.items()), sep="  ")
    if given.json is not None:
        found = {"threads": given.threads, "words": sum(map(len, sentences)), "rows": rows}
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def measure(load: Callable[[], Parser], sentences: Sequence[Sentence]) -> dict[str, float]:
    """Scores as fractions, words a second, and seconds to load the model."""
    begun = time.perf_counter()
    parse = load()
    loading = time.perf_counter() - begun
    seconds, found = [], list[Parsed]()
    for _ in range(_PASSES):
        begun = time.perf_counter()
        found = parse(sentences)
        seconds.append(time.perf_counter() - begun)
    speed = sum(map(len, sentences)) / min(seconds)
    return {**scores(sentences, found), "words/s": speed, "load s": loading}


def scores(sentences: Sequence[Sentence], found: Iterable[Parsed]) -> dict[str, float]:
    """UAS, LAS and CLAS as in the evaluation of CoNLL 2018, and the share of right tags."""
    counts, right = defaultdict[str, float](float), defaultdict[str, int](int)
    for gold, parsed in zip(sentences, found, strict=True):
        assert gold.heads is not None
        punctuation = is_punctuation(gold.words, gold.columns["upos"])
        labels = gold.columns["deprel"]
        own = count_attachments(gold.heads, labels, parsed.heads, parsed.labels, punctuation)
        for name, value in own.items():
            counts[name] += value
        for name, tags in (("upos", parsed.upos), ("xpos", parsed.xpos)):
            right[name] += sum(a == b for a, b in zip(gold.columns[name], tags, strict=True))
    words = sum(map(len, sentences))
    return attachment_scores(counts) | {name: count / words for name, count in right.items()}


def _ours(folder: Path) -> Callable[[], Parser]:
    def load() -> Parser:
        run = load_run(folder)

        def parse(sentences: Sequence[Sentence]) -> list[Parsed]:
            bare = [Sentence(sentence.words, {}) for sentence in sentences]
            found = []
            for (best,) in predict_parses(run, bare):
                none = ["_"] * len(best.heads)
                tags = [best.tags.get(name, none) for name in ("upos", "xpos")]
                found.append(Parsed(best.heads, best.labels or none, *tags))
            return found

        return parse

    return load


def _train_udpipe(data: Path, model: Path) -> None:
    from ufal import udpipe

    train, dev = (_udpipe_sentences(data / f"{name}.conllu") for name in ("train", "dev"))
    error = udpipe.ProcessingError()
    none, default = udpipe.Trainer.NONE, udpipe.Trainer.DEFAULT
    trained = udpipe.Trainer.train("morphodita_parsito", train, dev, none, default, default, error)
    require(not error.occurred(), f"UDPipe: {error.message}")
    model.write_bytes(trained)


def _udpipe_sentences(file: Path) -> Any:
    from ufal import udpipe

    reader, found = udpipe.InputFormat.newConlluInputFormat(), udpipe.Sentences()
    reader.setText(file.read_text(encoding="utf-8"))
    error, sentence = udpipe.ProcessingError(), udpipe.Sentence()
    while reader.nextSentence(sentence, error):
        found.append(sentence)
        sentence = udpipe.Sentence()
    require(not error.occurred(), f"{file}: {error.message}")
    return found


def _load_udpipe(file: Path) -> Callable[[], Parser]:
    def load() -> Parser:
        from ufal import udpipe

        model = udpipe.Model.load(str(file))

        def parse(sentences: Sequence[Sentence]) -> list[Parsed]:
            found = []
            for sentence in sentences:
                given = udpipe.Sentence()
                for word in sentence.words:
                    given.addWord(word)
                for step in (model.tag, model.parse):
                    error = udpipe.ProcessingError()
                    require(step(given, model.DEFAULT, error), f"UDPipe: {error.message}")
                words = list(given.words)[1:]  # the first one is ROOT
                heads = [word.head - 1 if word.head else ROOT for word in words]
                columns = ("deprel", "upostag", "xpostag")
                rest = ([getattr(word, name) for word in words] for name in columns)
                found.append(Parsed(heads, *rest))
            return found

        return parse

    return load


def _train_spacy(data: Path, model: Path) -> None:
    from spacy.cli.init_config import init_config
    from spacy.cli.train import train
    from spacy.tokens import Doc, DocBin
    from spacy.vocab import Vocab

    folder = model.with_suffix(".training")
    folder.mkdir(exist_ok=True)
    for name in ("train", "dev"):
        docs = DocBin()
        for sentence in SentenceFile(data / f"{name}.conllu", "conllu"):
            assert sentence.heads is not None
            columns = sentence.columns
            docs.add(
                Doc(
                    Vocab(),
                    words=list(sentence.words),
                    tags=list(columns["xpos"]),
                    pos=list(columns["upos"]),
                    heads=[i if j == ROOT else j for i, j in enumerate(sentence.heads)],
                    deps=list(columns["deprel"]),
                )
            )
        docs.to_disk(folder / f"{name}.spacy")
    pipeline = ["tagger", "morphologizer", "parser"]
    with redirect_stdout(sys.stderr):
        config = init_config(lang="en", pipeline=pipeline, optimize="efficiency", gpu=False)
        config.to_disk(folder / "config.cfg")
        paths = {f"paths.{name}": str(folder / f"{name}.spacy") for name in ("train", "dev")}
        train(folder / "config.cfg", folder / "out", overrides=paths)
    (folder / "out" / "model-best").rename(model)


def _load_spacy(folder: Path) -> Callable[[], Parser]:
    def load() -> Parser:
        import spacy
        from spacy.tokens import Doc

        nlp = spacy.load(folder)

        def parse(sentences: Sequence[Sentence]) -> list[Parsed]:
            docs = []
            for sentence in sentences:
                starts = [True] + [False] * (len(sentence) - 1)
                docs.append(Doc(nlp.vocab, words=list(sentence.words), sent_starts=starts))
            found = []
            for doc in nlp.pipe(docs):
                heads = [ROOT if word.head.i == word.i else word.head.i for word in doc]
                labels = ["root" if word.dep_ == "ROOT" else word.dep_ for word in doc]
                tags = [word.pos_ for word in doc], [word.tag_ for word in doc]
                found.append(Parsed(heads, labels, *tags))
            return found

        return parse

    return load


ANCHORS = {"udpipe": (_train_udpipe, _load_udpipe), "spacy": (_train_spacy, _load_spacy)}
"""By name: how to train one, and how to load it."""


if __name__ == "__main__":
    main()
