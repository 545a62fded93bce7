"""From settings to a training that is ready to go."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import nn

from probformer.config import RunSettings, TransformerSettings, from_toml
from probformer.data.corpus import build_vocabulary, load_corpus
from probformer.data.encoded import EncodedSplit
from probformer.data.randomness import Purpose, derive_seed
from probformer.data.readers import SentenceFile
from probformer.data.sentence import Sentence
from probformer.encoder import Encoder
from probformer.errors import InputError, require
from probformer.heads import Model
from probformer.tasks import Task, build_task
from probformer.training.loop import Training
from probformer.training.report import Reporter
from probformer.training.run_folder import Run, build_encoder, load_run, write_description


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
    if resume:
        settings = _same_settings(settings, folder)
    elif (folder / "config.json").exists():
        raise InputError(f"{folder}: holds a run already; resume it, or choose another folder")
    corpus = load_corpus(settings.data, data)
    vocabulary = build_vocabulary(settings.vocabulary, corpus["train"])
    task = build_task(settings.task, vocabulary)
    task.learn_classes(corpus["train"])
    splits = {}
    for name, sentences in corpus.items():
        splits[name] = task.encode(sentences)
        _report_split(name, sentences, task, reporter)

    _check_lengths(settings, splits)
    torch.manual_seed(derive_seed(settings.seed, Purpose.INITIALISATION))
    encoder = build_encoder(settings.encoder, len(vocabulary))
    model = Model(encoder, task.build_head(encoder))
    run = Run(settings, vocabulary, task, model)
    if init is not None:
        reporter.say(start_from(run, load_run(init)))
    if accelerator.is_main_process:
        write_description(folder, run)
    accelerator.wait_for_everyone()
    training = Training(run, splits, folder, accelerator, reporter)
    if resume and training.resume():
        done = training.progress
        reporter.say(f"going on after {done.epoch} epochs and {done.batch} batches")
    return training


def _same_settings(settings: RunSettings, folder: Path) -> RunSettings:
    path = folder / "run.toml"
    require(path.is_file(), f"{folder}: has nothing to resume: run.toml is missing")
    before = from_toml(RunSettings, path)
    require(before == settings, f"{path}: differs from the settings given; resume takes the same")
    return before


def _report_split(name: str, sentences: Iterable[Sentence], task: Task, reporter: Reporter) -> None:
    if isinstance(sentences, SentenceFile) and sentences.report.skipped:
        bad = sentences.report
        first = "; ".join(f"line {line}: {reason}" for line, reason in bad.problems)
        reporter.warn(f"{sentences.path}: left out {bad.skipped} sentences with bad lines: {first}")
    for warning in task.warnings():
        reporter.warn(f"{name}: {warning}")


def _check_lengths(settings: RunSettings, splits: dict[str, EncodedSplit]) -> None:
    encoder = settings.encoder
    if not isinstance(encoder, TransformerSettings) or encoder.positions != "learned":
        return
    for name, split in splits.items():
        longest = int(split.lengths.argmax())
        length, rows = int(split.lengths[longest]), encoder.max_length
        table = f"the position table has {rows} rows (encoder.max_length)"
        require(length <= rows, f"{name}: sentence {longest + 1} has {length} tokens, {table}")


def start_from(run: Run, other: Run) -> str:
    """Take another run's encoder; words are matched by their spelling. Says what was found."""
    encoder, source = run.model.encoder, other.model.encoder
    words, weights = _embedding(encoder), dict(source.named_parameters())
    taken = 0
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            if parameter is words.weight:
                continue
            if name not in weights or weights[name].shape != parameter.shape:
                raise InputError(f"the encoder to start from does not fit: {name} differs")
            parameter.copy_(weights[name])
        for index, word in enumerate(run.vocabulary.words):
            if word in other.vocabulary:
                row = _embedding(source).weight[other.vocabulary.id_of(word)]
                words.weight[index] = row
                taken += 1
    left = len(run.vocabulary) - taken
    return f"started from an encoder: {taken} words matched, {left} words are new"


def _embedding(encoder: nn.Module) -> nn.Embedding:
    return encoder.word_scores if isinstance(encoder, Encoder) else encoder.words  # type: ignore[return-value]
