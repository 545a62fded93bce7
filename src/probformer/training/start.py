"""From settings to a training that is ready to go."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator

from probformer.config import PlateauSchedule, RunSettings, from_toml
from probformer.config.reading import differences
from probformer.data.corpus import FileSplit, build_vocabulary, load_corpus
from probformer.data.encoded import EncodedSplit
from probformer.data.randomness import Purpose, derive_seed
from probformer.data.sentence import Sentence
from probformer.errors import InputError, counted, require
from probformer.models.readout import Model
from probformer.runs.run_folder import (
    Run,
    build_encoder,
    clear_run,
    has_begun,
    holds_run,
    load_description,
    load_run,
    read_environment,
    write_description,
    write_settings,
)
from probformer.sentinels import UNOBSERVED
from probformer.tasks import Task, build_task
from probformer.training.loop import Training
from probformer.training.processes import ask_first
from probformer.training.progress import Reporter
from probformer.training.trackers import check_tensorboard


def prepare(
    settings: RunSettings,
    folder: Path,
    data: Path,
    reporter: Reporter,
    accelerator: Accelerator,
    init: Path | None = None,
    resume: bool = False,
) -> Training:
    """Reads the data, builds the model, and goes back to a checkpoint if told so."""
    going_on = ask_first(accelerator, lambda: _goes_on(settings, folder, resume, reporter))
    if settings.training.tensorboard:
        check_tensorboard()

    corpus = load_corpus(settings.data, data)
    vocabulary = build_vocabulary(settings.vocabulary, corpus.counted)
    task = build_task(settings.task, vocabulary)
    task.skips_bad_sentences = getattr(settings.data, "skip_bad_lines", False)
    task.learn_classes(corpus.splits["train"])
    if going_on and accelerator.is_main_process:
        _check_same_classes(task, folder)
    given = corpus.splits.items()
    splits = {name: encode_split(name, text, task, reporter) for name, text in given}
    if going_on and accelerator.is_main_process:
        _check_same_sentences(splits, folder)
    check_lengths(settings, splits)
    _check_judgement(task, splits)
    _check_gold_heads(settings, splits["train"], reporter)

    torch.manual_seed(derive_seed(settings.seed, Purpose.INITIALISATION))
    encoder = build_encoder(settings.encoder, len(vocabulary))
    run = Run(settings, vocabulary, task, Model(encoder, task.build_readout(encoder)))
    if init is not None and not going_on:
        reporter.say(start_from(run, load_run(init)))
    if accelerator.is_main_process and going_on:
        write_settings(folder, settings)
    elif accelerator.is_main_process:
        clear_run(folder)
        write_description(folder, run, init, {name: s.digest() for name, s in splits.items()})
    _report_model(run, accelerator, reporter)
    training = Training(run, splits, folder, accelerator, reporter)
    if going_on and training.resume():
        done = training.progress
        place = f"{counted(done.epoch, 'epoch')} and {counted(done.batch, 'batch', 'batches')}"
        reporter.say(f"going on after {place}")
    elif going_on and (before := read_environment(folder).get("init")):
        reporter.say(start_from(run, load_run(before)))  # it came to no checkpoint
    return training


def _goes_on(settings: RunSettings, folder: Path, resume: bool, reporter: Reporter) -> bool:
    """Whether there is a run to go on with; a model that is there is never overwritten."""
    begun = has_begun(folder)
    if resume and begun:
        _check_same_settings(settings, folder)
    elif begun and holds_run(folder):
        choice = "--resume goes on with it, --out chooses another folder"
        raise InputError(f"{folder}: holds a run already; {choice}")
    elif holds_run(folder):
        choice = "run.toml is missing; --out chooses another folder"
        raise InputError(f"{folder}: holds a model already, but no run to go on with: {choice}")
    elif resume:
        reporter.say(f"{folder} holds no run to resume: starting anew")
    return resume and begun


def _report_model(run: Run, accelerator: Accelerator, reporter: Reporter) -> None:
    parameters = f"{run.model.encoder.count_parameters():,} parameters"
    device = accelerator.device.type
    reporter.say(f"encoder of {parameters}, vocabulary of {len(run.vocabulary):,}, on {device}")
    training = run.settings.training
    chunks = -(-training.batch // (training.chunk or training.batch))
    if chunks < accelerator.num_processes:
        have = f"{counted(chunks, 'chunk')} for {accelerator.num_processes} processes"
        reporter.warn(f"a batch has {have}: a smaller training.chunk gives all of them work")


def encode_split(
    name: str, sentences: Iterable[Sentence], task: Task, reporter: Reporter
) -> EncodedSplit:
    """A split as numbers; says how large it is, and what is odd about it."""
    split = task.encode(sentences)
    require(len(split) > 0, f"{name}: has no sentence")
    unknown = int(np.count_nonzero(split.fields["words"] == task.vocabulary.unk))
    size = f"{counted(len(split), 'sentence')}, {counted(split.tokens, 'token')}"
    reporter.say(f"{name}: {size}, {unknown:,} of them unknown")
    for warning in (*skipped_lines(sentences), *task.warnings()):
        reporter.warn(f"{name}: {warning}")
    return split


def skipped_lines(sentences: object) -> list[str]:
    """What the latest pass over a split left out."""
    warnings = []
    for file in sentences.files if isinstance(sentences, FileSplit) else ():
        if bad := file.report.skipped:
            first = "; ".join(f"line {line}: {reason}" for line, reason in file.report.problems)
            found = f"left out {counted(bad, 'sentence')} with bad lines"
            warnings.append(f"{file.path}: {found}: {first}")
    return warnings


def _check_same_settings(settings: RunSettings, folder: Path) -> None:
    """What does not change the run may differ; more epochs do not if a plateau ends it."""
    path = folder / "run.toml"
    free = {"name", "training.checkpoint_minutes", "training.tensorboard"}
    if isinstance(settings.training.schedule, PlateauSchedule):
        free.add("training.epochs")
    for key, (old, new) in differences(from_toml(RunSettings, path), settings).items():
        message = f"{path}: has {key} = {old!r}, but the run to go on with would have {new!r}"
        require(key in free, message)


def _check_same_classes(task: Task, folder: Path) -> None:
    before = load_description(folder)
    same = before.vocabulary.words == task.vocabulary.words and before.task.state() == task.state()
    message = "the data is not that of the run: its words or classes differ"
    require(same, f"{folder}: {message}")


def _check_same_sentences(splits: dict[str, EncodedSplit], folder: Path) -> None:
    before = read_environment(folder).get("data", {})
    for name, split in splits.items():
        message = f"the data is not that of the run: the sentences of {name} differ"
        require(before.get(name) in (None, split.digest()), f"{folder}: {message}")


def _check_judgement(task: Task, splits: dict[str, EncodedSplit]) -> None:
    for name, split in splits.items():
        reason = None if name == "train" else task.why_no_metrics(split)
        require(reason is None, f"{name}: {reason}")


def check_lengths(settings: RunSettings, splits: dict[str, EncodedSplit]) -> None:
    places = settings.encoder.max_words
    if places is None:
        return
    for name, split in splits.items():
        longest = int(split.lengths.argmax())
        length = int(split.lengths[longest])
        table = f"the position table has places for {places} (encoder.max_length)"
        require(length <= places, f"{name}: sentence {longest + 1} has {length} tokens, {table}")


def _check_gold_heads(settings: RunSettings, split: EncodedSplit, reporter: Reporter) -> None:
    if settings.training.gold_heads is None:
        return
    known = float(np.mean(np.asarray(split.fields["heads"]) != UNOBSERVED))
    require(known > 0, "training.gold_heads needs data with heads, and words that are not split")
    if known < 1:
        reporter.warn(f"{100 * known:.0f} % of the training tokens have a gold head")


def start_from(run: Run, other: Run) -> str:
    """Take another run's encoder; words are matched by their spelling. Says what was found."""
    encoder, source = run.model.encoder, other.model.encoder
    words, source_words = encoder.embedding, source.embedding
    own = {name: p for name, p in encoder.named_parameters() if p is not words.weight}
    given = {name: p for name, p in source.named_parameters() if p is not source_words.weight}
    fresh = sorted({*own} - {*given})
    for name in sorted(given):
        shapes = [tuple(side[name].shape) if name in side else "none" for side in (own, given)]
        message = f"{name} has shape {shapes[0]}, in the run to start from {shapes[1]}"
        require(shapes[0] == shapes[1], f"the encoder to start from does not fit: {message}")
    special = (run.vocabulary.unk, run.vocabulary.mask)
    taken = 0
    with torch.no_grad():
        for name, parameter in given.items():
            own[name].copy_(parameter)
        for index, word in enumerate(run.vocabulary.words):
            if word in other.vocabulary:
                words.weight[index] = source_words.weight[other.vocabulary.id_of(word)]
                taken += index not in special
    left = len(run.vocabulary) - len(special) - taken
    new = f"; not in it: {', '.join(fresh)}" if fresh else ""
    return f"started from an encoder: {counted(taken, 'word')} matched, {left:,} are new{new}"
