"""What `probformer parse` does: figures on the terminal, figures as JSON, trees as CoNLL-U."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from probformer.analysis.attachment import BASELINES, LENGTHS, Accuracy, group_of
from probformer.analysis.parsing import ANY, AVERAGE, Parsing, Question, channel, parse_sentences
from probformer.analysis.texts import check_source, count_unknown, read_text, size_text
from probformer.data.formats.conllu import as_conllu, with_heads
from probformer.data.readers import lines_of
from probformer.data.sentence import Sentence
from probformer.errors import counted, require
from probformer.runs.files import require_writable, write_text
from probformer.runs.run_folder import load_run

_NOTES = """\
UAS: words with their gold head. UUAS: gold arcs between words that were found, in any direction.
best channel: the one with the highest UUAS on these very sentences. any channel: a word counts if
its most probable head is right in one of the channels, be it a tree or not; without ROOT in the
model, that of a root never is. left chain: each word hangs from the one before it; right chain:
from the one after it; random: the mean of five draws. No word heads itself: what attention gives
to the word itself is left out."""


def parse_file(
    folder: Path,
    file: Path | None,
    data: Path,
    question: Question,
    split: str | None = None,
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """Without a file, the sentences are those of a split of the run's data, by default test."""
    check_source(file, split)
    if out is not None:
        _check_trees(out, file, question)
    run = load_run(folder)
    run.model.to("cuda" if torch.cuda.is_available() else "cpu")
    sentences = read_text(run, file, data, split or "test", "conllu")
    if out is not None and out.exists():
        for path in {sentence.path for sentence in sentences} - {""}:
            require(not out.samefile(path), f"{out}: --out would overwrite what is parsed")
    parsing = parse_sentences(run, sentences, question)
    unknown = count_unknown(run, sentences)
    if out is not None:  # before anything is printed to somebody who may not read to the end
        unparsed = lines_of(file) if file else (line for s in sentences for line in as_conllu(s))
        heads = (int(head) for sentence in parsing.heads for head in sentence)
        out.parent.mkdir(parents=True, exist_ok=True)
        write_text(out, "".join(f"{line}\n" for line in with_heads(unparsed, heads)))
    if as_json:
        print(json.dumps(figures(parsing, sentences, question, unknown), ensure_ascii=False))
    else:
        _print(parsing, sentences, question, unknown)
    if out is not None:
        print(f"the trees are in {out}", file=sys.stderr if as_json else sys.stdout)


def _check_trees(out: Path, file: Path | None, question: Question) -> None:
    message = "--out writes trees: it needs the decoder tree or projective, got argmax"
    require(question.decoder != "argmax", message)
    if file is not None and file.exists():
        require(file.is_file(), f"{file}: --out needs a file, which is read twice")
    require_writable(out)


def figures(
    parsing: Parsing, sentences: Sequence[Sentence], question: Question, unknown: int
) -> dict[str, Any]:
    """All that was counted, as shares of 1."""
    return {
        "sentences": len(sentences),
        "words": sum(map(len, sentences)),
        "unknown": unknown,
        "decoder": question.decoder,
        "single_root": question.single_root,
        "channel": parsing.chosen,
        parsing.step: parsing.iteration,
        "ways": {name: asdict(parsing.accuracy(way)) for name, way in _ways(parsing)},
        "best_channel": parsing.best_channel(),
        "channels": [asdict(parsing.accuracy(channel(c))) for c in range(parsing.channels)],
        "lengths": {
            _length(group): {"sentences": count}
            | {name: asdict(parsing.accuracy(way, group=group)) for name, way in _ways(parsing)}
            for group, count in _groups(sentences)
        },
        f"{parsing.step}s": {
            t: {name: asdict(parsing.accuracy(way, t)) for name, way in _of_the_model(parsing, t)}
            for t in parsing.iterations
        },
    }


def _of_the_model(parsing: Parsing, iteration: int | None = None) -> Iterator[tuple[str, str]]:
    """What is compared: what to call it, and the way it is."""
    yield AVERAGE, AVERAGE
    yield "best channel", channel(parsing.best_channel(iteration))
    yield ANY, ANY


def _ways(parsing: Parsing) -> Iterator[tuple[str, str]]:
    yield from _of_the_model(parsing)
    yield from ((baseline, baseline) for baseline in BASELINES)


def _print(
    parsing: Parsing, sentences: Sequence[Sentence], question: Question, unknown: int
) -> None:
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(
        f"{size_text(len(sentences), sum(map(len, sentences)), unknown)}; decoder "
        f"{question.decoder}, {parsing.step} {parsing.iteration}, "
        f"{counted(parsing.channels, 'channel')}"
    )
    console.print(_overview(parsing))
    if len(parsing.iterations) > 1:
        console.print(_by_iteration(parsing))
    console.print(_by_length(parsing, sentences))
    console.print(_NOTES, highlight=False)


def _overview(parsing: Parsing) -> Table:
    table = Table(title="accuracy, %", title_justify="left")
    table.add_column("heads")
    for name in ("UAS", "UUAS", "UAS without punctuation", "UUAS without punctuation"):
        table.add_column(name, justify="right")
    rows = list(_ways(parsing))
    if isinstance(parsing.asked, int):
        asked = channel(parsing.asked)
        rows.insert(1, (asked, asked))
    for name, way in rows:
        shown = f"{name}: {parsing.best_channel()}" if name == "best channel" else name
        shares = asdict(parsing.accuracy(way)).values()
        table.add_row(shown, *map(_percent, shares), end_section=name == ANY)
    return table


def _by_iteration(parsing: Parsing) -> Table:
    table = _pairs_table(parsing.step, [name for name, _ in _of_the_model(parsing)])
    for t in parsing.iterations:
        accuracies = [parsing.accuracy(way, t) for _, way in _of_the_model(parsing, t)]
        table.add_row(str(t), *map(_pair, accuracies))
    return table


def _by_length(parsing: Parsing, sentences: Sequence[Sentence]) -> Table:
    table = _pairs_table("words", ["sentences", *(name for name, _ in _ways(parsing))])
    for group, count in _groups(sentences):
        accuracies = [parsing.accuracy(way, group=group) for _, way in _ways(parsing)]
        table.add_row(_length(group), f"{count:,}", *map(_pair, accuracies))
    return table


def _pairs_table(first: str, names: Iterable[str]) -> Table:
    table = Table(title=f"UAS / UUAS by {first}, %", title_justify="left")
    table.add_column(first)
    for name in names:
        table.add_column(name, justify="right")
    return table


def _groups(sentences: Sequence[Sentence]) -> list[tuple[int, int]]:
    """Groups of similar length, and how many sentences are in each."""
    return sorted(Counter(map(group_of, sentences)).items())


def _length(group: int) -> str:
    low = LENGTHS[group - 1] + 1 if group else 1
    return f"{low}–{LENGTHS[group]}" if group < len(LENGTHS) else f"{low}–"


def _pair(accuracy: Accuracy) -> str:
    return f"{_percent(accuracy.uas)} / {_percent(accuracy.uuas)}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"
