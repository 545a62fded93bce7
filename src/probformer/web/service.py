"""The explorer without the web: runs by their names, and what can be asked of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from probformer import viz
from probformer.analysis.drawing import check_options, draw_reading, owners
from probformer.analysis.reading import Reading, answer_of, read_sentence, read_sentences, within
from probformer.errors import InputError, counted, require, shortened
from probformer.runs.run_folder import Run, load_run
from probformer.web.clamps import can_clamp, evidence_of
from probformer.web.meanings import first_sentences, meanings
from probformer.web.questions import Clamps, DrawQuestion, InferQuestion, Sentence

VERSION = 1
_STRONGEST, _LEAST = 5, 0.5e-4
_MOST_WORDS, _LONGEST_WORD = 200, 100
_MOST_PIECES = 300  # of a sentence whose words are split
_MOST_NUMBERS = 8_000_000  # 300 pieces, 16 channels and 5 iterations, and some more
_MOST_ARCS, _MOST_CELLS = 20_000, 200_000  # of a picture: a few seconds
_EXAMPLE, _EXAMPLE_WORDS, _LOOKED_AT = "she did not see the dog .", range(6, 13), 200


class NotFound(InputError):
    """What was asked for by name is not there."""


class Explorer:
    """Runs are known by the names of their folders; no path is ever read that was asked for."""

    def __init__(self, folders: Sequence[Path], data: Path) -> None:
        """Files that a run's settings name are looked for below `data`, if anybody asks."""
        self._runs: dict[str, Run] = {}
        for folder in folders:
            self._runs[_free_name(folder, self._runs)] = load_run(folder)
        self._data = data
        self._examples = {name: _example(run, data) for name, run in self._runs.items()}
        self._meanings: dict[str, dict[str, Any]] = {}

    def runs(self) -> dict[str, Any]:
        described = [
            {"name": name, **_described(run), "example": self._examples[name]}
            for name, run in self._runs.items()
        ]
        return {"version": VERSION, "runs": described}

    def infer(self, question: InferQuestion) -> dict[str, Any]:
        run = self._run(question.run)
        sentences = [_words(run, sentence) for sentence in question.sentences]
        _check_size(run, sentences)
        clamped = bool(question.clamps.heads or question.clamps.labels)
        require(not clamped or len(sentences) == 1, "clamps go with exactly one sentence")
        if clamped or run.vocabulary.subwords:  # how long pieces make a batch, words do not tell
            readings = (_read(run, words, question.clamps) for words in sentences)
        else:
            readings = read_sentences(run, sentences)
        return {
            "version": VERSION,
            "run": question.run,
            "step": run.model.encoder.settings.step_name,
            "results": [_result(run, reading) for reading in readings],
        }

    def draw(self, question: DrawQuestion) -> str:
        """A file: the same picture as that of `probformer draw`."""
        run = self._run(question.run)
        words = _words(run, question.sentence)
        _check_size(run, [words])
        channel = None if question.channel is None else str(question.channel)
        options = question.kind, channel, question.iteration, question.threshold
        check_options(*options)
        picture = draw_reading(run, _read(run, words, question.clamps), *options)
        _check_marks(picture)
        forms = {"svg": picture.svg, "html": picture.html, "tex": picture.tikz}
        return forms[question.format]()

    def label(self, name: str, label: int) -> dict[str, Any]:
        """The words that own it without context."""
        encoder = self._run(name).model.encoder
        if encoder.settings.label_count is None:
            raise NotFound("labels are those of a probabilistic transformer, this is a transformer")
        try:
            within("label", label, encoder.settings.label_count)
        except InputError as error:
            raise NotFound(str(error)) from None
        return {"label": label, "words": owners(self._run(name), [label])[label]}

    def meanings(self, name: str) -> dict[str, Any]:
        """Found out when somebody asks, and kept."""
        run = self._run(name)
        if name not in self._meanings:
            try:
                self._meanings[name] = meanings(run, self._data)
            except InputError as error:
                raise NotFound(str(error)) from None
        return self._meanings[name]

    def _run(self, name: str) -> Run:
        if name not in self._runs:
            known = ", ".join(map(repr, self._runs))
            raise NotFound(f"there is no run {shortened(name)}: the explorer has {known}")
        return self._runs[name]


def _free_name(folder: Path, taken: Iterable[str]) -> str:
    """The folder's own name, with a number if there is another of that name."""
    name = folder.resolve().name.encode(errors="replace").decode() or "run"
    names = [name, *(f"{name}-{number}" for number in range(2, len(list(taken)) + 2))]
    return next(name for name in names if name not in taken)


def _described(run: Run) -> dict[str, Any]:
    encoder = run.model.encoder
    task = run.settings.task.kind
    settings = encoder.settings
    return {
        "model": settings.kind,
        "task": task,
        "step": settings.step_name,
        "steps": settings.steps,
        "channels": settings.channels,
        "labels": settings.label_count,
        "has_root": settings.has_root,
        "can_clamp": can_clamp(run),
    }


def _example(run: Run, data: Path) -> str:
    """A sentence of the run's own data, neither short nor long, if the data is there."""
    sentences = first_sentences(run, data, _LOOKED_AT)
    known = [s.words for s in sentences if not run.vocabulary.count_unknown(s.words)]
    return next((" ".join(words) for words in known if len(words) in _EXAMPLE_WORDS), _EXAMPLE)


def _words(run: Run, sentence: Sentence) -> list[str]:
    words = sentence.split() if isinstance(sentence, str) else sentence
    require(len(words) > 0, "a sentence must have words, got none")
    most = f"a sentence may have {_MOST_WORDS} words"
    require(len(words) <= _MOST_WORDS, f"{most}, got {counted(len(words), 'word')}")
    for word in words:
        most = f"a word may have {_LONGEST_WORD} characters"
        require(len(word) <= _LONGEST_WORD, f"{most}, got {len(word):,}: {shortened(word)}")
        require(_is_unicode(word), f"a word must be valid Unicode, got {shortened(word)}")
    pieces = _count_pieces(run, words)
    most = f"a sentence may have {_MOST_PIECES} pieces of words"
    require(pieces <= _MOST_PIECES, f"{most}, got {pieces:,}")
    return words


def _is_unicode(word: str) -> bool:
    """JSON can write half a character, but no file can hold it."""
    return not any("\ud800" <= character <= "\udfff" for character in word)


def _count_pieces(run: Run, words: Sequence[str]) -> int:
    return len(run.vocabulary.encode(words).ids)


def _check_size(run: Run, sentences: Sequence[Sequence[str]]) -> None:
    described = _described(run)
    pairs = sum(_count_pieces(run, words) ** 2 for words in sentences)
    numbers = described["steps"] * described["channels"] * pairs
    most = f"an answer may take {_MOST_NUMBERS:,} numbers"
    remedy = "ask for fewer or shorter sentences"
    require(numbers <= _MOST_NUMBERS, f"{most}, got {numbers:,}: {remedy}")


def _check_marks(picture: viz.Picture) -> None:
    if isinstance(picture, viz.Arcs):
        arcs = sum(len(panel.arcs) for panel in picture.panels)
        most = f"a picture may have {_MOST_ARCS:,} arcs"
        require(arcs <= _MOST_ARCS, f"{most}, got {arcs:,}: a higher threshold leaves some out")
    if isinstance(picture, viz.HeatMap):
        cells = sum(matrix.size for _, matrix in picture.panels)
        most = f"a heat map may have {_MOST_CELLS:,} cells"
        require(cells <= _MOST_CELLS, f"{most}, got {cells:,}: choose one channel")


def _read(run: Run, words: Sequence[str], clamps: Clamps) -> Reading:
    return read_sentence(run, words, evidence_of(run, len(words), clamps))


def _result(run: Run, reading: Reading) -> dict[str, Any]:
    answer = answer_of(run, reading)
    unknown = [i for i, word in enumerate(reading.words) if run.vocabulary.count_unknown([word])]
    return {
        "words": reading.words,
        "unknown": unknown,
        "heads": reading.heads,
        "root": reading.root,
        "labels": None if reading.labels is None else _strongest(reading.labels),
        "free_energy": None if reading.free_energy is None else reading.free_energy.tolist(),
        "answer": {name: value for name, value in answer.items() if name != "words"},
    }


def _strongest(labels: np.ndarray) -> list[list[list[dict[str, Any]]]]:
    """Of (T, n, d), a few for each word, the strongest first, without those that round to none."""
    order = np.argsort(-labels, axis=-1, kind="stable")[..., :_STRONGEST]
    shares = np.take_along_axis(labels, order, axis=-1)
    return [
        [
            [{"label": a, "p": p} for a, p in zip(*word, strict=True) if p >= _LEAST]
            for word in zip(*step, strict=True)
        ]
        for step in zip(order.tolist(), shares.tolist(), strict=True)
    ]
