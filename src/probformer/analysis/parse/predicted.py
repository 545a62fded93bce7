"""`probformer parse` for the run of a parser: its trees, as CoNLL-U or as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import tee
from pathlib import Path

import torch

from probformer.analysis.input_text import check_not_overwritten, read_text, words_of
from probformer.data.formats.conllu import TAG_COLUMNS, annotated
from probformer.data.parsed import Parse
from probformer.data.sentence import Sentence
from probformer.data.unparsed import Unparsed, read_unparsed, suffix_of
from probformer.errors import counted, require
from probformer.runs.files import replacing, require_writable
from probformer.runs.parsing import ParseOptions, parser_of, predict_parses
from probformer.runs.prediction import note_unknown
from probformer.runs.run_folder import Run

_SUFFIXES = (".conllu", ".txt")


@dataclass(frozen=True)
class ParseOutput:
    """What is written, and where."""

    out: Path | None = None
    """A file; None for standard output."""
    probabilities: bool = False
    """Whether CoNLL-U has them in MISC."""
    as_json: bool = False
    """Whether a JSON object for each parse is written in place of CoNLL-U."""


def write_parses(
    run: Run,
    inputs: Sequence[str],
    data: Path,
    split: str | None,
    options: ParseOptions,
    output: ParseOutput,
) -> None:
    """Parse text and write the parses as they are found.

    Args:
        run: The run of a parser.
        inputs: Sentences, files, or "-" for standard input; which is also read without any.
        data: The folder of the run's data.
        split: A split of the run's data, in place of inputs.
        options: How to parse.
        output: What to write.

    Raises:
        InputError: The input cannot be read or parsed, or the output cannot be written.
    """
    message = "give sentences and files, or --split, not both"
    require(not inputs or split is None, message)
    _check_options(options, output)
    if split is None:
        paths = [given for given in inputs if _is_file(given)]
        for path in paths:
            require(os.path.exists(path), f"{path}: there is no such file")
        texts = _texts(inputs, options.keep_heads)
    else:
        sentences = read_text(run, None, data, split)
        paths = {sentence.path for sentence in sentences} - {""}
        texts = map(Unparsed.of, sentences)
    if output.out is not None:
        require_writable(output.out)
        check_not_overwritten(output.out, paths)
        output.out.parent.mkdir(parents=True, exist_ok=True)
    run.model.to("cuda" if torch.cuda.is_available() else "cpu")
    writer = _Writer(run, options, output)
    opened = nullcontext(sys.stdout.buffer) if output.out is None else replacing(output.out)
    with opened as file:
        for line in writer.lines(texts):
            file.write(f"{line}\n".encode(errors="replace"))
        file.flush()
    writer.note()


def _check_options(options: ParseOptions, output: ParseOutput) -> None:
    message = "CoNLL-U needs trees: the decoder argmax, which may find none, needs --json"
    require(options.decoder != "argmax" or output.as_json, message)
    message = "--json has all probabilities, so it does not go with --probabilities"
    require(not (output.as_json and output.probabilities), message)


def _texts(inputs: Sequence[str], with_heads: bool) -> Iterator[Unparsed]:
    for given in inputs or ["-"]:
        if given == "-":
            yield from read_unparsed(sys.stdin.buffer, with_heads)
        elif _is_file(given):
            yield from read_unparsed(given, with_heads)
        else:
            yield Unparsed.of(Sentence(tuple(words_of(given))))


def _is_file(given: str) -> bool:
    """Whether this is the name of a file and not a sentence."""
    is_named_so = suffix_of(given) in _SUFFIXES and len(given.split()) == 1
    return given != "-" and (is_named_so or os.path.exists(given))


class _Writer:
    """From unparsed text to lines of output. It remembers what is to be said in the end."""

    def __init__(self, run: Run, options: ParseOptions, output: ParseOutput) -> None:
        self.run, self.options, self.output = run, options, output
        self.without_enhanced = 0
        self.unknown: dict[str, None] = {}

    def lines(self, texts: Iterable[Unparsed]) -> Iterator[str]:
        texts, ahead = tee(texts)
        sentences = (text.sentence for text in ahead if text.sentence is not None)
        found = predict_parses(self.run, sentences, self.options)
        for text in texts:
            if text.sentence is not None:
                parses, words = next(found), text.sentence.words
                is_unknown = self.run.vocabulary.count_unknown
                self.unknown |= dict.fromkeys(word for word in words if is_unknown([word]))
                if self.output.as_json:
                    yield from self._json(text.sentence, parses)
                else:
                    yield from self._conllu(text.lines, parses)
            elif not self.output.as_json:
                yield from text.lines

    def _json(self, sentence: Sentence, parses: Sequence[Parse]) -> Iterator[str]:
        for number, parse in enumerate(parses, start=1):
            found = {"id": sentence.id} if sentence.id else {}
            found |= {} if self.options.samples is None else {"sample": number}
            found |= {"words": sentence.words, **parse.as_dict()}
            yield json.dumps(found, ensure_ascii=False)

    def _conllu(self, lines: Sequence[str], parses: Sequence[Parse]) -> Iterator[str]:
        is_dropped = False
        comments = next(at for at, line in enumerate(lines) if not line.startswith("#"))
        for number, parse in enumerate(parses, start=1):
            annotation = parse.annotation(self.output.probabilities)
            written, dropped = annotated(lines, [annotation])
            is_dropped |= dropped > 0
            if self.options.samples is not None:
                written.insert(comments, f"# sample = {number}")
            yield from written
        self.without_enhanced += is_dropped

    def note(self) -> None:
        """Say on standard error what a user may not expect."""
        note_unknown(self.run, self.unknown)
        if self.without_enhanced:
            where = counted(self.without_enhanced, "sentence")
            notice = f"enhanced dependencies (DEPS) are dropped in {where} with new heads"
            print(f"note: {notice}", file=sys.stderr)
        task = parser_of(self.run)
        assert task is not None
        others = [column for column in task.settings.tags if column not in TAG_COLUMNS]
        if others and not self.output.as_json:
            notice = f"CoNLL-U has no column for the tags {', '.join(others)}, --json has them"
            print(f"note: {notice}", file=sys.stderr)
