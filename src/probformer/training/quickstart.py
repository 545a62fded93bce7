"""`probformer quickstart`: small models on the built-in corpus, beside context-free baselines."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from probformer.config import RunSettings
from probformer.config.lookup import read_settings
from probformer.data.corpus import load_corpus
from probformer.data.sentence import Sentence
from probformer.runs.run_folder import load_run
from probformer.sentinels import ROOT
from probformer.tasks.mlm import MaskedLM
from probformer.training.commands import train_one

RUNS = ("mlm-builtin-pt", "mlm-builtin-transformer", "tagging-builtin-pt", "parsing-builtin-pt")


def run_quickstart(out: Path) -> None:
    """Train, then print a table and commands to try next."""
    settings = {name: read_settings(name, []) for name in RUNS}
    results = {name: train_one(settings[name], out / name, name=name)["test"] for name in RUNS}
    unigram = unigram_perplexity(out / "mlm-builtin-pt", settings["mlm-builtin-pt"])
    frequent = frequent_tag_accuracy(settings["tagging-builtin-pt"])

    table = Table("built-in corpus, test split", "figure")
    for model in ("pt", "transformer"):
        perplexity = results[f"mlm-builtin-{model}"]["perplexity"]
        table.add_row(f"masked perplexity, {_NAMES[model]}", f"{perplexity:.1f}")
    table.add_row("masked perplexity, unigram", f"{unigram:.1f}")
    accuracy = results["tagging-builtin-pt"]["accuracy"]
    table.add_row("tagging accuracy, probabilistic transformer", f"{100 * accuracy:.1f} %")
    table.add_row("tagging accuracy, most frequent tag of a word", f"{100 * frequent:.1f} %")
    parser = results["parsing-builtin-pt"]
    for title, share in (
        ("words with the right head (UAS), parser", parser["uas"]),
        ("words with the right head and label (LAS), parser", parser["las"]),
        (
            "words with the right head, if it is always the next word",
            next_word_accuracy(settings["parsing-builtin-pt"]),
        ),
    ):
        table.add_row(title, f"{100 * share:.1f} %")
    console = Console()
    console.print(table)
    console.print(f"The runs are in {out}. Try next:", highlight=False)
    for line in (
        f'predict {out}/mlm-builtin-pt "the <mask> of the guard was fine ."',
        f'predict {out}/tagging-builtin-pt "they plan to visit her ."',
        f'parse {out}/parsing-builtin-pt "you can visit the coach in the building ."',
        f'draw {out}/parsing-builtin-pt "you can visit the coach in the building ."',
        "train mlm-builtin-pt --set training.epochs=30 --out runs/longer",
    ):
        console.print(f"  {sys.argv[0]} {line}", highlight=False, soft_wrap=True)


_NAMES = {"pt": "probabilistic transformer", "transformer": "transformer"}


def unigram_perplexity(folder: Path, settings: RunSettings) -> float:
    """Perplexity of the test split's masked words under add-one unigram frequencies."""
    run = load_run(folder)
    task = run.task
    assert isinstance(task, MaskedLM)
    splits = load_corpus(settings.data, Path(".")).splits
    counts = np.bincount(task.encode(splits["train"]).fields["words"], minlength=task.classes)
    probabilities = (counts[: task.classes] + 1) / (counts[: task.classes] + 1).sum()
    test = task.encode(splits["test"])
    targets = task.evaluation_batch(test, range(len(test))).targets["word"].numpy()
    return math.exp(-np.log(probabilities[targets]).mean())


def frequent_tag_accuracy(settings: RunSettings) -> float:
    """Accuracy of giving each word its most frequent tag, and an unknown word that of all words."""
    column = settings.task.column  # type: ignore[union-attr]
    splits = load_corpus(settings.data, Path(".")).splits
    by_word: dict[str, Counter[str]] = {}
    overall: Counter[str] = Counter()
    for word, tag in _tagged(splits["train"], column):
        by_word.setdefault(word, Counter())[tag] += 1
        overall[tag] += 1
    guesses = [
        by_word.get(word, overall).most_common(1)[0][0] == tag
        for word, tag in _tagged(splits["test"], column)
    ]
    return sum(guesses) / len(guesses)


def next_word_accuracy(settings: RunSettings) -> float:
    """UAS of taking the next word as the head of each word, and ROOT as that of the last."""
    test = load_corpus(settings.data, Path(".")).splits["test"]
    right = words = 0
    for sentence in test:
        chain = (*range(1, len(sentence)), ROOT)
        right += sum(a == b for a, b in zip(sentence.heads or (), chain, strict=True))
        words += len(sentence)
    return right / words


def _tagged(sentences: Iterable[Sentence], column: str) -> Iterable[tuple[str, str]]:
    for sentence in sentences:
        yield from zip(sentence.words, sentence.columns[column], strict=True)
