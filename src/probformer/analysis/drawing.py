"""What `draw` does: a run and a sentence, or a config, become a picture."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from probformer import viz
from probformer.analysis.reading import Floats, Reading, channel_of, read_sentence
from probformer.analysis.texts import words_of
from probformer.config import EncoderSettings, RunSettings, from_toml
from probformer.config.lookup import read_settings
from probformer.config.settings import pt_settings
from probformer.data.vocabulary import MASK, UNKNOWN
from probformer.errors import InputError, require, require_one_of
from probformer.runs.files import require_writable
from probformer.runs.prediction import note_unknown
from probformer.runs.run_folder import Run, load_run

_GRAPHS = {"factors": viz.factor_graph, "computation": viz.computation_graph}
_OPTIONS = {
    "arcs": {"sentence", "channel", "iteration", "threshold", "probabilities"},
    "iterations": {"sentence", "channel", "threshold", "probabilities"},
    "heat": {"sentence", "channel", "iteration", "probabilities"},
    "labels": {"sentence", "iteration"},
    "factors": set[str](),
    "computation": set[str](),
}
_OWNERS = 6


def draw(
    target: str,
    sentence: str = "",
    kind: str = "arcs",
    channel: str | None = None,
    iteration: int | None = None,
    threshold: float | None = None,
    probabilities: bool = False,
) -> viz.Picture:
    """A picture of how a run reads a sentence, or of the graph of a run or config."""
    asked_sentence = sentence if sentence.strip() else None
    check_options(kind, channel, iteration, threshold, probabilities, asked_sentence)
    if kind in _GRAPHS:
        return _GRAPHS[kind](_encoder_settings(target))
    words, _ = words_of(sentence), _channel(channel)  # before anything is loaded
    run = load_run(target)
    note_unknown(run, words)
    reading = read_sentence(run, words)
    return draw_reading(run, reading, kind, channel, iteration, threshold, probabilities)


def check_options(
    kind: str,
    channel: str | None = None,
    iteration: int | None = None,
    threshold: float | None = None,
    probabilities: bool = False,
    sentence: str | None = None,
) -> None:
    """Whether those that are given go with the kind of picture."""
    require_one_of("kind", kind, _OPTIONS)
    given = {
        "channel": channel,
        "iteration": iteration,
        "probabilities": probabilities or None,
        "sentence": sentence,
        "threshold": threshold,
    }
    for name, value in given.items():
        allowed = value is None or name in _OPTIONS[kind]
        require(allowed, f"{name} does not go with the kind {kind!r}")


def draw_reading(
    run: Run,
    reading: Reading,
    kind: str = "arcs",
    channel: str | None = None,
    iteration: int | None = None,
    threshold: float | None = None,
    probabilities: bool = False,
) -> viz.Picture:
    """A picture of a sentence as a run has read it."""
    chosen = _channel(channel)
    iteration = -1 if iteration is None else iteration
    threshold = viz.THRESHOLD if threshold is None else threshold
    if kind == "labels":
        return _draw_labels(run, reading, iteration)
    if kind == "iterations":
        return _draw_iterations(reading, chosen, threshold, probabilities)
    heads, root, titles = _chosen(reading, chosen, reading.iteration(iteration))
    words = reading.words
    if kind == "heat":
        return viz.heat_map(words, heads, root, probabilities=probabilities, titles=titles)
    return viz.arcs(
        words, heads, root, threshold=threshold, probabilities=probabilities, titles=titles
    )


def check_target(out: Path) -> None:
    """Before anything is loaded."""
    viz.check_suffix(out)
    require_writable(out)


def show(picture: viz.Picture, out: Path | None) -> None:
    """Into a file by its suffix, or onto the terminal."""
    if out:
        picture.save(out)
    else:
        sys.stdout.write(picture.text(shutil.get_terminal_size().columns))


def _channel(given: str | None) -> int | str:
    reason = "channel 'best' needs gold heads, which a sentence on its own has not"
    require(given != "best", f"{reason}; probformer parse finds it on a treebank")
    return channel_of("average" if given is None else given, "average", "all")


def _draw_iterations(
    reading: Reading, channel: int | str, threshold: float, probabilities: bool
) -> viz.Picture:
    message = f"channel must be a number or 'average' over {reading.step}s, got 'all'"
    require(channel != "all", message)
    steps = [_chosen(reading, channel, t) for t in range(len(reading.heads))]
    heads = [heads for heads, _, _ in steps]
    root = None if reading.root is None else [root for _, root, _ in steps]
    titles = [f"{reading.step} {t + 1} of {len(steps)}" for t in range(len(steps))]
    return viz.animation(
        reading.words,
        heads,
        root,
        threshold=threshold,
        probabilities=probabilities,
        titles=titles,
    )


def _draw_labels(run: Run, reading: Reading, iteration: int) -> viz.Picture:
    if reading.labels is None:
        raise InputError("labels are those of a probabilistic transformer, this is a transformer")
    marginals = reading.labels[reading.iteration(iteration)]
    strongest = np.argsort(-marginals, axis=1, kind="stable")[:, : viz.STRONGEST]
    return viz.label_table(reading.words, marginals, owners(run, np.unique(strongest).tolist()))


def owners(run: Run, labels: Iterable[int]) -> dict[int, list[str]]:
    """For each label the words that, without context, are likeliest to have it."""
    encoder = run.model.encoder
    alone = encoder.label_distributions().numpy()
    found = {}
    for label in labels:
        order = np.argsort(-alone[:, label], kind="stable")
        entries = [run.vocabulary.decode([at])[0] for at in order[: _OWNERS + 2]]
        found[label] = [entry for entry in entries if entry not in (MASK, UNKNOWN)][:_OWNERS]
    return found


def _chosen(
    reading: Reading, channel: int | str, at: int
) -> tuple[Floats, Floats | None, Sequence[str]]:
    """Heads, root and titles of one channel, of their average, or of all of them."""
    heads = reading.heads[at]
    root = None if reading.root is None else reading.root[at]
    if channel == "all":
        return heads, root, [f"channel {c}" for c in range(len(heads))]
    if isinstance(channel, str):
        return heads.mean(0), None if root is None else root.mean(0), ()
    number = reading.channel(channel)
    return heads[number], None if root is None else root[number], ()


def _encoder_settings(target: str) -> EncoderSettings:
    saved = Path(target) / "run.toml"
    settings = from_toml(RunSettings, saved) if saved.is_file() else read_settings(target, [])
    message = f"{target}: graphs are of probabilistic transformers, this is another one"
    return pt_settings(settings.encoder, message)
