"""From settings to a training that is ready to begin, or to continue."""

from __future__ import annotations

from pathlib import Path

import torch
from accelerate import Accelerator

from probformer.config import RunSettings
from probformer.data.corpus import build_vocabulary, load_corpus
from probformer.data.randomness import Purpose, derive_seed
from probformer.errors import counted
from probformer.models.build import build_encoder
from probformer.models.readout import Model
from probformer.runs.run_folder import (
    Run,
    clear_run,
    load_run,
    read_environment,
    write_description,
    write_settings,
)
from probformer.tasks import MakeTask, build_auxiliary, build_task
from probformer.training.loop import AfterEpoch, Training
from probformer.training.processes import on_main_process
from probformer.training.progress import Reporter
from probformer.training.resume import (
    check_same_classes,
    check_same_sentences,
    checkpoint_to_resume,
    is_resumed,
    roll_back,
)
from probformer.training.splits import check_gold_heads, check_lengths, check_metrics, encode_split
from probformer.training.stopping import StopSignal
from probformer.training.trackers import check_tensorboard
from probformer.training.warm_start import copy_encoder


def prepare(
    settings: RunSettings,
    folder: Path,
    data: Path,
    reporter: Reporter,
    accelerator: Accelerator,
    init: Path | None = None,
    resume: bool = False,
    stop: StopSignal | None = None,
    after_epoch: AfterEpoch = lambda line: None,
    make_task: MakeTask = build_task,
) -> Training:
    """Read the data, build the model, and go back to the last checkpoint of a run to resume.

    Args:
        settings: The settings of the run.
        folder: Where the run is, or will be.
        data: The folder of the data's files.
        reporter: Prints messages and progress.
        accelerator: The device, and the other processes of the run.
        init: A run whose encoder a new run starts from.
        resume: Continue the run in the folder, if there is one.
        stop: Records the signals that stop training.
        after_epoch: Called after each epoch with its line of metrics.jsonl.
        make_task: Makes the task from its settings and the vocabulary; pass a function that returns
            a `Task` subclass of your own to train that, and again to resume the run or to load it.

    Returns:
        The training, whose `train` method runs the epochs that are left.

    Raises:
        InputError: Settings, data and folder do not fit together.
    """
    resumed = on_main_process(accelerator, lambda: is_resumed(settings, folder, resume, reporter))
    if settings.training.tensorboard:
        check_tensorboard()

    corpus = load_corpus(settings.data, data)
    vocabulary = build_vocabulary(settings.vocabulary, corpus.counted)
    task = make_task(settings.task, vocabulary)
    task.skips_bad_sentences = getattr(settings.data, "skip_bad_lines", False)
    task.learn_classes(corpus.splits["train"])
    if resumed and accelerator.is_main_process:
        check_same_classes(task, folder, make_task)
    encoder_settings = task.encoder_settings(settings.encoder)
    given = corpus.splits.items()
    splits = {name: encode_split(name, text, task, reporter) for name, text in given}
    if resumed and accelerator.is_main_process:
        check_same_sentences(splits, folder)
    check_lengths(settings, splits)
    check_metrics(task, splits)

    torch.manual_seed(derive_seed(settings.seed, Purpose.INITIALISATION))
    encoder = build_encoder(encoder_settings, len(vocabulary))
    run = Run(settings, vocabulary, task, Model(encoder, task.build_readout(encoder)))
    objectives = (task, *build_auxiliary(settings.training, encoder))
    check_gold_heads(objectives, splits["train"], reporter)
    if init is not None and not resumed:
        reporter.say(copy_encoder(run, load_run(init)))
    if accelerator.is_main_process and resumed:
        write_settings(folder, settings)
    elif accelerator.is_main_process:
        clear_run(folder)
        write_description(folder, run, init, {name: s.digest() for name, s in splits.items()})
    _report_model(run, accelerator, reporter)
    stop = StopSignal() if stop is None else stop
    training = Training(run, splits, folder, accelerator, reporter, stop, after_epoch)
    if resumed:
        _go_back(training, folder)
    return training


def _go_back(training: Training, folder: Path) -> None:
    """Restore the last checkpoint; without one, start again, from `--init` if the run did so."""
    accelerator, reporter = training.accelerator, training.reporter
    checkpoint = on_main_process(accelerator, lambda: checkpoint_to_resume(folder, reporter.warn))
    if checkpoint is not None:
        training.restore(checkpoint)
    if accelerator.is_main_process:
        roll_back(folder, checkpoint)
    if checkpoint is not None:
        done = checkpoint.progress
        place = f"{counted(done.epoch, 'epoch')} and {counted(done.batch, 'batch', 'batches')}"
        reporter.say(f"resuming after {place}")
    elif init := read_environment(folder).get("init"):
        reporter.say(copy_encoder(training.run, load_run(init)))


def _report_model(run: Run, accelerator: Accelerator, reporter: Reporter) -> None:
    parameters = f"{run.model.encoder.count_parameters():,} parameters"
    device = accelerator.device.type
    reporter.say(f"encoder of {parameters}, vocabulary of {len(run.vocabulary):,}, on {device}")
    training = run.settings.training
    chunks = -(-training.batch // (training.chunk or training.batch))
    if chunks < accelerator.num_processes:
        have = f"{counted(chunks, 'chunk')} for {accelerator.num_processes} processes"
        reporter.warn(f"a batch has {have}: a smaller training.chunk would use all of them")
