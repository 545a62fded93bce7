"""`probformer draw`: a run and a sentence, or a config, as a picture."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from probformer import viz
from probformer.analysis.input_text import words_of
from probformer.analysis.marginals import (
    Floats,
    SentenceMarginals,
    channel_of,
    infer_sentence,
    task_answer,
)
from probformer.config import ArcLabelSettings, EncoderSettings, ParsingSettings
from probformer.config.lookup import read_settings
from probformer.config.settings import pt_settings
from probformer.data.vocabulary import MASK, UNKNOWN
from probformer.errors import InputError, require, require_one_of
from probformer.runs.files import require_writable
from probformer.runs.prediction import note_unknown
from probformer.runs.run_folder import Run, load_run, saved_encoder_settings

_GRAPHS = {"factors": viz.factor_graph, "computation": viz.computation_graph}
_OPTIONS = {
    "tree": {"sentence", "probabilities"},
    "arcs": {"sentence", "channel", "iteration", "threshold", "probabilities"},
    "iterations": {"sentence", "channel", "threshold", "probabilities"},
    "heat": {"sentence", "channel", "iteration", "probabilities"},
    "labels": {"sentence", "iteration"},
    "factors": set[str](),
    "computation": set[str](),
}
_OWNERS = 6


def draw_to(
    out: Path | None,
    target: str,
    sentence: str = "",
    kind: str | None = None,
    channel: str | None = None,
    iteration: int | None = None,
    threshold: float | None = None,
    probabilities: bool = False,
) -> None:
    """Save the picture of `draw` in the format of the file's suffix, or print it as text."""
    if out is not None:  # checked before anything is loaded
        viz.check_suffix(out)
        require_writable(out)
    picture = draw(target, sentence, kind, channel, iteration, threshold, probabilities)
    if out is not None:
        picture.save(out)
    else:
        sys.stdout.write(picture.text(shutil.get_terminal_size().columns))


def draw(
    target: str,
    sentence: str = "",
    kind: str | None = None,
    channel: str | None = None,
    iteration: int | None = None,
    threshold: float | None = None,
    probabilities: bool = False,
) -> viz.Picture:
    """A picture of the marginals of a sentence, or of the graph of a model.

    Args:
        target: A run folder; for the graphs of a model, also a config.
        sentence: Words separated by white space; none for the graphs.
        kind: "tree", "arcs", "iterations", "heat" or "labels" of a sentence, or a graph of the
            model: "factors" or "computation". By default "tree" of a parser, if no option chooses
            among arcs, otherwise "arcs".
        channel: A number from 0, "average" or "all"; by default that of a parser, or whose arcs
            have labels, otherwise "average".
        iteration: Counted from 1; −1, the default, is the last.
        threshold: Arcs below this probability are left out; 0.15 by default.
        probabilities: Whether to write them into the picture.

    Returns:
        The picture.

    Raises:
        InputError: An option does not exist, or does not go with the kind.
    """
    given_sentence = sentence if sentence.strip() else None
    options = channel, iteration, threshold
    check_options(kind or "arcs", *options, probabilities, given_sentence)
    if kind in _GRAPHS:
        return _GRAPHS[kind](_encoder_settings(target))
    words, _ = words_of(sentence), _channel(channel)  # checked before anything is loaded
    run = load_run(target)
    note_unknown(run, words)
    marginals = infer_sentence(run, words)
    if kind is None:
        kind = "tree" if run.task.predicts_trees and options == (None, None, None) else "arcs"
    return draw_marginals(run, marginals, kind, channel, iteration, threshold, probabilities)


def check_options(
    kind: str,
    channel: str | None = None,
    iteration: int | None = None,
    threshold: float | None = None,
    probabilities: bool = False,
    sentence: str | None = None,
) -> None:
    """Refuse options that the kind of picture does not have."""
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


def draw_marginals(
    run: Run,
    marginals: SentenceMarginals,
    kind: str = "arcs",
    channel: str | None = None,
    iteration: int | None = None,
    threshold: float | None = None,
    probabilities: bool = False,
) -> viz.Picture:
    """`draw` for marginals that a run has inferred already; the graphs are not among the kinds."""
    if kind == "tree":
        return _draw_tree(run, marginals, probabilities)
    given = _channel(channel)
    chosen = given if given is not None else "average" if run.channel is None else run.channel
    iteration = -1 if iteration is None else iteration
    threshold = viz.THRESHOLD if threshold is None else threshold
    if kind == "labels":
        return _draw_labels(run, marginals, iteration)
    if kind == "iterations":
        return _draw_iterations(marginals, chosen, threshold, probabilities)
    at, words = marginals.iteration(iteration), marginals.words
    heads, root, titles = _of_channel(marginals, chosen, at)
    if kind == "heat":
        return viz.heat_map(words, heads, root, probabilities=probabilities, titles=titles)
    labels, of_labels = _labels_of_channel(marginals, chosen, at)
    return viz.arcs(
        words,
        heads,
        root,
        labels=labels,
        label_probabilities=of_labels,
        threshold=threshold,
        probabilities=probabilities,
        titles=titles,
    )


draw_reading = draw_marginals  # its name in older notebooks


def _channel(given: str | None) -> int | str | None:
    reason = "channel 'best' needs gold heads: `probformer parse` finds its number on a treebank"
    require(given != "best", reason)
    return None if given is None else channel_of(given, "average", "all")


def _draw_tree(run: Run, marginals: SentenceMarginals, probabilities: bool) -> viz.Picture:
    message = f"kind 'tree' needs a parser, this run has the task {run.settings.task.kind!r}"
    require(run.task.predicts_trees, message)
    answer = task_answer(run, marginals)
    return viz.tree(
        marginals.words,
        answer["heads"],
        answer.get("labels"),
        head_probabilities=answer.get("head_probabilities"),
        label_probabilities=answer.get("label_probabilities"),
        probabilities=probabilities,
    )


def _draw_iterations(
    marginals: SentenceMarginals, channel: int | str, threshold: float, probabilities: bool
) -> viz.Picture:
    message = f"channel must be a number or 'average' over {marginals.step}s, got 'all'"
    require(channel != "all", message)
    steps = [_of_channel(marginals, channel, t) for t in range(len(marginals.heads))]
    labelled = [_labels_of_channel(marginals, channel, t) for t in range(len(marginals.heads))]
    heads = [heads for heads, _, _ in steps]
    root = None if marginals.root is None else [root for _, root, _ in steps]
    titles = [f"{marginals.step} {t + 1} of {len(steps)}" for t in range(len(steps))]
    return viz.animation(
        marginals.words,
        heads,
        root,
        labels=[labels for labels, _ in labelled],
        label_probabilities=[of_labels for _, of_labels in labelled],
        threshold=threshold,
        probabilities=probabilities,
        titles=titles,
    )


def _draw_labels(run: Run, marginals: SentenceMarginals, iteration: int) -> viz.Picture:
    if marginals.labels is None:
        raise InputError("only a probabilistic transformer has labels, this is a transformer")
    labels = marginals.labels[marginals.iteration(iteration)]
    strongest = np.argsort(-labels, axis=1, kind="stable")[:, : viz.STRONGEST]
    return viz.label_table(marginals.words, labels, owners(run, np.unique(strongest).tolist()))


def owners(run: Run, labels: Iterable[int]) -> dict[int, list[str]]:
    """For each label, the words with the highest P(label | word) without context."""
    distributions = run.model.encoder.label_distributions().numpy()
    found = {}
    for label in labels:
        order = np.argsort(-distributions[:, label], kind="stable")
        entries = [run.vocabulary.decode([at])[0] for at in order[: _OWNERS + 2]]
        found[label] = [entry for entry in entries if entry not in (MASK, UNKNOWN)][:_OWNERS]
    return found


def _of_channel(
    marginals: SentenceMarginals, channel: int | str, at: int
) -> tuple[Floats, Floats | None, Sequence[str]]:
    """Heads, root and titles of one channel, of their average, or of all of them."""
    heads = marginals.heads[at]
    root = None if marginals.root is None else marginals.root[at]
    if channel == "all":
        return heads, root, [f"channel {c}" for c in range(len(heads))]
    if isinstance(channel, str):
        return heads.mean(0), None if root is None else root.mean(0), ()
    number = marginals.channel(channel)
    return heads[number], None if root is None else root[number], ()


def _labels_of_channel(
    marginals: SentenceMarginals, channel: int | str, at: int
) -> tuple[Any, Any]:
    """Labels of arcs and their probabilities, as `viz.arcs` takes them; None where there are none.

    Those of all channels are a list with an entry for each.
    """
    labels = marginals.arc_labels
    if channel == "all" and labels is not None:
        found = [_labels_of_channel(marginals, c, at) for c in range(marginals.heads.shape[1])]
        return [texts for texts, _ in found], [of_labels for _, of_labels in found]
    if labels is None or channel != labels.channel:
        return None, None
    return labels.texts(at), labels.probabilities[at]


def _encoder_settings(target: str) -> EncoderSettings:
    message = f"{target}: graphs are drawn of probabilistic transformers, this is a transformer"
    folder = Path(target)
    if (folder / "config.json").is_file():
        return pt_settings(saved_encoder_settings(folder), message)
    settings = read_settings(target, [])
    encoder, task = pt_settings(settings.encoder, message), settings.task
    if isinstance(task, ParsingSettings):  # its arcs have the labels of the data
        return replace(encoder, arc_labels=encoder.arc_labels or ArcLabelSettings(task.channel))
    return encoder
