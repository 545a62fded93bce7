"""Training, as the paper did it: Adam, chunks whose gradients add up, clipping, a plateau on dev.

Nothing random has a state. The order of sentences, masks and dropout are functions of the seed and
of the place in training, so a run that is stopped and resumed, or that is shared by several
processes, goes the same way as one that is not (on a GPU, but for dropout and rounding).

A GPU is never waited for within an epoch, but once in a while: batches are made and steps handed
over while it is still busy with earlier ones.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor

from probformer.config import RunSettings
from probformer.data.batches import Indices, training_batches
from probformer.data.encoded import EncodedSplit
from probformer.data.randomness import Purpose, derive_seed
from probformer.data.word_dropout import forget_words
from probformer.errors import InputError
from probformer.runs.files import read_tensors
from probformer.runs.run_folder import (
    WEIGHTS,
    Run,
    append_metrics,
    forget_metrics_after,
    holds_run,
    read_metrics,
    write_model_card,
    write_weights,
)
from probformer.tasks.batch import Batch, Plan
from probformer.tasks.build import build_auxiliary
from probformer.tasks.objective import lowest_head
from probformer.training.captured import CapturedGradients, Gradients
from probformer.training.checkpoints import (
    Checkpoint,
    Progress,
    newest_checkpoint,
    restore,
    restore_best,
    save_checkpoint,
)
from probformer.training.evaluation import evaluate, products_in
from probformer.training.processes import ask_first, sum_over_processes
from probformer.training.progress import Reporter
from probformer.training.schedule import build_schedule
from probformer.training.stopping import Stopped, StopSignal
from probformer.training.trackers import write_curves
from probformer.training.updates import DeviceUpdates, Updates

WORDS_TOGETHER = 16384
"""So many words of a batch, with padding, go through the model at once."""
_SHORT_SAVE = 0.2
"""Seconds. A checkpoint that takes no longer is made after each epoch, however short that is."""
_SAVES_APART = 10
"""One that takes longer has to wait until so many times its own time has passed."""


@dataclass
class Training:
    """One run: its model, its data, and how far it is."""

    run: Run
    splits: dict[str, EncodedSplit]
    folder: Path
    accelerator: Accelerator
    reporter: Reporter
    progress: Progress = field(default_factory=Progress)
    stop: StopSignal = field(default_factory=StopSignal)
    after_epoch: Callable[[dict[str, Any]], None] = lambda line: None
    """Is told the line of each epoch once it is written; what it raises ends the run."""

    def __post_init__(self) -> None:
        self.settings: RunSettings = self.run.settings
        self.training = self.settings.training
        self.model = self.run.model.to(self.accelerator.device)
        for parameter in self.model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        self.auxiliary = build_auxiliary(self.training, self.model.encoder)
        objectives = (self.run.task, *self.auxiliary)
        self.needs_heads = any(objective.needs_heads for objective in objectives)
        self.on_gpu = self.accelerator.device.type == "cuda"
        self.loss = torch.zeros((), device=self.accelerator.device)
        """Of the update to be made, summed over its chunks like the gradients."""
        parameters, kind = [*self.model.parameters()], DeviceUpdates if self.on_gpu else Updates
        self.updates = kind(parameters, self.loss, self.training)
        self.optimizer = self.updates.optimizer
        self.gradients = self._build_gradients()
        self.plan = self._plan()
        batches = math.ceil(len(self.splits["train"]) / self.training.batch)
        self.schedule = build_schedule(
            self.training.schedule, self.training.learning_rate, batches * self.training.epochs
        )
        self._shown = self.splits["train"]
        self._saved, self._save_took = time.monotonic(), 0.0
        self._unread: list[tuple[str, int]] = []
        """Place and number of chunks of the updates of which nobody knows yet what they found."""

    def _build_gradients(self) -> Gradients:
        captured = self.on_gpu and self.settings.encoder.has_fixed_steps
        kind = CapturedGradients if captured else Gradients
        return kind(self.batch_loss, self.loss, [*self.model.parameters()])

    def _plan(self) -> Plan:
        """On a GPU shapes repeat, and sentences lie end to end where kernels know of that."""
        encoder = self.settings.encoder
        can_pack = self.model.encoder.can_pack
        packed = not self.needs_heads and can_pack(
            self.run.task.reads_single_words, self.training.precision
        )
        return Plan(
            chunk=self.training.chunk,
            packed=self.on_gpu and packed,
            front=encoder.extra_places,
            rounded=self.on_gpu,
            longest=encoder.max_words,
            lowest_head=lowest_head(self.model.encoder) if self.needs_heads else None,
        )

    def resume(self) -> bool:
        """Go back to the last whole checkpoint; false if there is none, and nothing to lose."""
        found = ask_first(self.accelerator, self._newest_checkpoint)
        if found is not None:
            restore(found, self.model, self.optimizer)
            self.progress = found.progress
            self.schedule.load_state(self.progress.schedule)
            if self.accelerator.is_main_process:
                restore_best(found.path, self.folder / WEIGHTS)
        if self.accelerator.is_main_process:
            forget_metrics_after(self.folder, self.progress.epoch)
        return found is not None

    def _newest_checkpoint(self) -> Checkpoint | None:
        found = newest_checkpoint(self.folder / "state", self.reporter.warn)
        if found is None and holds_run(self.folder):
            reason = "holds a model, but no whole checkpoint to go on from"
            raise InputError(f"{self.folder}: {reason}; --out chooses another folder")
        return found

    def train(self) -> dict[str, dict[str, float]]:
        """All epochs that are left; then the figures of the best one."""
        if self.progress.step == 0:
            self._save()  # the weights that the run starts with may come from elsewhere
        while self.progress.epoch < self.training.epochs and not self.schedule.finished:
            self._epoch()
            self.after_epoch(self._judge())
        return self._finish()

    def _epoch(self) -> None:
        progress, split = self.progress, self.splits["train"]
        batches = training_batches(
            split.lengths,
            self.training.batch,
            progress.epoch,
            self.settings.seed,
            self.training.by_length,
        )
        self._shown = self._show(split)
        self.model.train()
        begin = time.monotonic() - progress.seconds
        while progress.batch < len(batches):
            self._update(batches[progress.batch])
            progress.batch += 1
            progress.step += 1
            if progress.batch == len(batches):
                self._settle()
            progress.seconds = time.monotonic() - begin
            speed = progress.batch * self.training.batch / max(progress.seconds, 1e-9)
            self.reporter.batch_done(progress, len(batches), self.training.epochs, speed)
            stop = self._must_stop()
            if stop or time.monotonic() - self._saved > 60 * self.training.checkpoint_minutes:
                self._save()
            if stop:
                raise Stopped(self.stop.received or signal.SIGTERM)

    def _update(self, indices: Indices) -> None:
        """Chunks of a batch each give a gradient; their sum is clipped and given to Adam."""
        size = self.training.chunk or self.training.batch
        chunks = [indices[start : start + size] for start in range(0, len(indices), size)]
        numbers = range(self.accelerator.process_index, len(chunks), self.accelerator.num_processes)
        passes = self._passes(chunks, numbers)
        if not passes:
            self.gradients.clear()
        for together in passes:
            place = self.progress.step, together[0]
            # Of its own device alone: a seed for all devices takes long to set.
            set_seed = torch.cuda.manual_seed if self.on_gpu else torch.manual_seed
            set_seed(derive_seed(self.settings.seed, Purpose.DROPOUT, *place))
            batch = self._batch_of(np.concatenate([chunks[number] for number in together]))
            self.gradients.add(batch, first=together is passes[0])
        self._add_up()
        self.updates.apply(self.schedule.rate(self.progress.step))
        at = f"epoch {self.progress.epoch + 1}, batch {self.progress.batch + 1}"
        self._unread.append((at, len(chunks)))
        if len(self._unread) == self.updates.unread:
            self._settle()

    def _passes(self, chunks: Sequence[Indices], numbers: Iterable[int]) -> list[list[int]]:
        """Which chunks go through the model together: on a GPU, all that fit."""
        passes: list[list[int]] = []
        lengths, sentences, longest = self.splits["train"].lengths, 0, 0
        for number in numbers:
            sentences += len(chunks[number])
            longest = max(longest, int(lengths[chunks[number]].max()))
            if not passes or not self.on_gpu or sentences * longest > WORDS_TOGETHER:
                passes.append([])
                sentences, longest = len(chunks[number]), int(lengths[chunks[number]].max())
            passes[-1].append(number)
        return passes

    def _settle(self) -> None:
        """Wait for what the updates so far found."""
        made, self._unread = self._unread, []
        for (place, chunks), (loss, norm) in zip(made, self.updates.read(), strict=True):
            for name, value in (("loss", loss), ("gradient's norm", norm)):
                if not math.isfinite(value):
                    advice = "a lower training.learning_rate may help; the last checkpoint is kept"
                    raise InputError(f"the {name} is {value} in {place}: {advice}")
            self.progress.loss += loss
            self.progress.chunks += chunks

    def _must_stop(self) -> bool:
        """Several processes agree about it, as often as all of them wait anyway."""
        stop = self.stop.received is not None
        if self.accelerator.num_processes == 1:
            return stop
        if self.progress.step % self.updates.unread:
            return False
        return sum_over_processes(self.accelerator, torch.tensor([float(stop)])).item() > 0

    def _batch_of(self, indices: Indices) -> Batch:
        epoch, seed = self.progress.epoch, self.settings.seed
        return self.run.task.training_batch(self._shown, indices, epoch, seed, self.plan)

    def _show(self, split: EncodedSplit) -> EncodedSplit:
        """A split as an epoch shows it: some of its words may be unknown."""
        strength, unknown = self.settings.vocabulary.forget, self.run.vocabulary.unk
        if not strength:
            return split
        seed = derive_seed(self.settings.seed, Purpose.FORGETTING, self.progress.epoch)
        return forget_words(split, unknown, strength, seed)

    def batch_loss(self, batch: Batch) -> Tensor:
        """The sum of all objectives; those beside the task are computed in full precision."""
        with products_in(self.training.precision, self.accelerator.device):
            output = self.model(batch.words, batch.mask, self.needs_heads, batch.packing)
            loss = self.run.task.loss(output, batch)
        for objective in self.auxiliary:
            loss = loss + objective.loss(output, batch)
        return loss

    def _add_up(self) -> None:
        """The loss and the parameters' gradients, over all processes."""
        if self.accelerator.num_processes == 1:
            return
        parts = [self.loss, *(p.grad for p in self.model.parameters() if p.grad is not None)]
        flat = torch.cat([part.flatten() for part in parts])
        summed = sum_over_processes(self.accelerator, flat).split([p.numel() for p in parts])
        for part, sum_ in zip(parts, summed, strict=True):
            part.copy_(sum_.view_as(part))

    def _judge(self) -> dict[str, Any]:
        """Dev metrics after an epoch: schedule, best weights, a line, a checkpoint."""
        progress = self.progress
        rate = self.schedule.rate(progress.step - 1)
        with self.updates.averaged():
            given = self.splits["dev"], self.accelerator, self.training.precision
            metrics = evaluate(self.model, self.run.task, *given)
            if not math.isfinite(metrics["loss"]):
                found = f"the dev loss is {metrics['loss']} in epoch {progress.epoch + 1}"
                raise InputError(f"{found}; the last checkpoint is kept")
            best = progress.best or {"score": -math.inf, "loss": math.inf}
            if (metrics["score"], -metrics["loss"]) > (best["score"], -best["loss"]):
                progress.best = {**metrics, "epoch": progress.epoch + 1}
                if self.accelerator.is_main_process:
                    write_weights(self.folder, self.model)
        self.schedule.epoch_ended(metrics)
        line = {
            "epoch": progress.epoch + 1,
            "step": progress.step,
            "learning_rate": rate,
            "train_loss": progress.loss / progress.chunks,
            "dev": metrics,
            "sentences": len(self.splits["train"]),
            "seconds": round(progress.seconds, 3),
        }
        if self.accelerator.is_main_process:
            append_metrics(self.folder, line)
            if self.training.tensorboard:
                write_curves(self.folder / "tensorboard", read_metrics(self.folder))
        self.reporter.epoch_done(line, self.run.task.metric, self.training.epochs)
        progress.epoch, progress.batch = progress.epoch + 1, 0
        progress.loss, progress.chunks, progress.seconds = 0.0, 0, 0.0
        if self._worth_saving():
            self._save()
        return line

    def _worth_saving(self) -> bool:
        """After an epoch: always, unless epochs are so short that checkpoints would take longer."""
        last = self.progress.epoch == self.training.epochs or self.schedule.finished
        waited = time.monotonic() - self._saved
        quick = self._save_took <= _SHORT_SAVE
        return last or quick or waited >= _SAVES_APART * self._save_took

    def _save(self) -> None:
        begin = time.monotonic()
        self._settle()
        self.progress.schedule = self.schedule.state()
        if self.accelerator.is_main_process:
            save_checkpoint(
                self.folder / "state",
                self.progress,
                self.model,
                self.optimizer,
                best=self.folder / WEIGHTS,
            )
        self._saved = time.monotonic()
        self._save_took = self._saved - begin

    def _finish(self) -> dict[str, dict[str, float]]:
        best = deepcopy(self.model)
        weights = ask_first(self.accelerator, lambda: read_tensors(self.folder / WEIGHTS))
        best.load_state_dict(weights)
        results = {
            name: evaluate(best, self.run.task, split, self.accelerator)
            for name, split in self.splits.items()
            if name != "train"
        }
        if self.accelerator.is_main_process:
            forget_metrics_after(self.folder, self.progress.epoch)
            best_epoch = (self.progress.best or {}).get("epoch")
            append_metrics(self.folder, {"final": results, "best_epoch": best_epoch})
            write_model_card(self.folder, self.run, results)
        return results
