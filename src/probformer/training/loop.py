"""The training loop of the paper: Adam, gradients added up over chunks, clipping, a schedule.

Nothing random has a state. The order of sentences, masks and dropout are functions of the seed and
of the position in training. So a run that is stopped and resumed, or shared by several processes,
gives the same result as one that is not (on a GPU, up to dropout and rounding).

Within an epoch the CPU waits for a GPU only every `Updates.max_pending` updates: it builds batches
and launches steps while the GPU still works on earlier ones.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

from probformer.data.batches import Indices
from probformer.data.encoded import EncodedSplit
from probformer.data.randomness import Purpose, derive_seed
from probformer.errors import InputError
from probformer.runs.files import read_tensors
from probformer.runs.run_folder import (
    WEIGHTS,
    Run,
    append_metrics,
    drop_metrics_after,
    read_metrics,
    write_model_card,
    write_weights,
)
from probformer.tasks import build_auxiliary
from probformer.tasks.batch import Plan
from probformer.training.batching import MAX_TOKENS, TrainingBatches, plan_for
from probformer.training.checkpoints import Checkpointer, Progress
from probformer.training.evaluation import evaluate
from probformer.training.gradients import CapturedGradients, EagerGradients
from probformer.training.loss import TrainingLoss
from probformer.training.processes import on_main_process, sum_over_processes
from probformer.training.progress import Reporter
from probformer.training.resume import Checkpoint
from probformer.training.schedule import build_schedule
from probformer.training.stopping import Stopped, StopSignal
from probformer.training.trackers import write_tensorboard
from probformer.training.updates import DeviceUpdates, Updates

AfterEpoch = Callable[[dict[str, Any]], None]
"""Called with the line that an epoch has added to metrics.jsonl; raises to end the run early."""


@dataclass
class Training:
    """One run: its model, its data, and how far it is."""

    run: Run
    splits: dict[str, EncodedSplit]
    folder: Path
    accelerator: Accelerator
    reporter: Reporter
    stop: StopSignal = field(default_factory=StopSignal)
    after_epoch: AfterEpoch = lambda line: None
    plan: Plan | None = None
    """The layout of batches; None: the one that suits device and model."""

    def __post_init__(self) -> None:
        self.settings = self.run.settings.training
        self.progress = Progress()
        self.model = self.run.model.to(self.accelerator.device)
        parameters = [*self.model.parameters()]
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        self.on_gpu = self.accelerator.device.type == "cuda"
        self.batch_loss = TrainingLoss(
            self.model,
            self.run.task,
            build_auxiliary(self.settings, self.model.encoder),
            self.settings.precision,
            self.accelerator.device,
        )
        plan = self.plan or plan_for(self.run, self.batch_loss.needs_heads, self.on_gpu)
        self.batches = TrainingBatches(
            self.run.settings,
            self.run.task,
            self.splits["train"],
            plan,
            MAX_TOKENS if self.on_gpu else 0,
        )
        self.loss = torch.zeros((), device=self.accelerator.device)
        """The loss of the next update, summed over its chunks as the gradients are."""
        captured = self.on_gpu and self.run.settings.encoder.has_fixed_steps
        gradients = CapturedGradients if captured else EagerGradients
        self.gradients = gradients(self.batch_loss, self.loss, parameters)
        updates = DeviceUpdates if self.on_gpu else Updates
        self.updates = updates(parameters, self.loss, self.settings)
        batches = math.ceil(len(self.splits["train"]) / self.settings.batch)
        self.schedule = build_schedule(
            self.settings.schedule, self.settings.learning_rate, batches * self.settings.epochs
        )
        self.checkpointer = Checkpointer(
            self.folder, self.folder / WEIGHTS, self.settings.checkpoint_minutes
        )
        self._pending: list[tuple[str, int]] = []
        """Updates not yet read back: their place in training and their number of chunks."""

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go back to the state of a checkpoint."""
        checkpoint.load_into(self.model, self.updates.optimizer)
        self.progress = checkpoint.progress
        self.schedule.load_state(self.progress.schedule)

    def train(self) -> dict[str, dict[str, float]]:
        """Train all epochs that are left.

        Returns:
            By split, the metrics of the weights of the best epoch.

        Raises:
            Stopped: Ctrl-C or SIGTERM was received; a checkpoint has been saved.
            InputError: A loss or a gradient is not finite.
        """
        if self.progress.step == 0:
            self._save()  # the initial weights may come from another run
        while self.progress.epoch < self.settings.epochs and not self.schedule.finished:
            self._epoch()
            self.after_epoch(self._end_epoch())
        return self._finish()

    def _epoch(self) -> None:
        progress, batches = self.progress, self.batches.of_epoch(self.progress.epoch)
        self.model.train()
        begin = time.monotonic() - progress.seconds
        while progress.batch < len(batches):
            self._update(batches[progress.batch])
            progress.batch += 1
            progress.step += 1
            if progress.batch == len(batches):
                self._read_back()
            progress.seconds = time.monotonic() - begin
            speed = progress.batch * self.settings.batch / max(progress.seconds, 1e-9)
            self.reporter.batch_done(progress, len(batches), self.settings.epochs, speed)
            stop = self._must_stop()
            if stop or self.checkpointer.is_due():
                self._save()
            if stop:
                raise Stopped(self.stop.received or signal.SIGTERM)

    def _update(self, indices: Indices) -> None:
        """One step: the gradients of a batch's chunks are added up, clipped and given to Adam."""
        progress, chunks = self.progress, self.batches.chunks(indices)
        own = range(self.accelerator.process_index, len(chunks), self.accelerator.num_processes)
        passes = self.batches.passes(chunks, own)
        if not passes:
            self.gradients.clear()
        for numbers in passes:
            place = progress.step, numbers[0]
            # Of this device only: seeding all devices in each update would be slow.
            set_seed = torch.cuda.manual_seed if self.on_gpu else torch.manual_seed
            set_seed(derive_seed(self.run.settings.seed, Purpose.DROPOUT, *place))
            batch = self.batches.build([chunks[number] for number in numbers], progress.epoch)
            self.gradients.add(batch, first=numbers is passes[0])
        self._sum_over_processes()
        self.updates.apply(self.schedule.rate(progress.step))
        at = f"epoch {progress.epoch + 1}, batch {progress.batch + 1}"
        self._pending.append((at, len(chunks)))
        if len(self._pending) == self.updates.max_pending:
            self._read_back()

    def _read_back(self) -> None:
        """Wait for the losses and gradient norms of all updates so far, and check them."""
        pending, self._pending = self._pending, []
        for (place, chunks), (loss, norm) in zip(pending, self.updates.read_back(), strict=True):
            for name, value in (("loss", loss), ("gradient's norm", norm)):
                if not math.isfinite(value):
                    advice = "a lower training.learning_rate may help; the last checkpoint is kept"
                    raise InputError(f"the {name} is {value} in {place}: {advice}")
            self.progress.loss += loss
            self.progress.chunks += chunks

    def _must_stop(self) -> bool:
        """Whether any process has received a signal.

        Several processes find out together, but only every `max_pending` updates, when they wait
        for the device in any case.
        """
        stop = self.stop.received is not None
        if self.accelerator.num_processes == 1:
            return stop
        if self.progress.step % self.updates.max_pending:
            return False
        return sum_over_processes(self.accelerator, torch.tensor([float(stop)])).item() > 0

    def _sum_over_processes(self) -> None:
        """Add up the loss and the parameters' gradients of all processes."""
        if self.accelerator.num_processes == 1:
            return
        parts = [self.loss, *(p.grad for p in self.model.parameters() if p.grad is not None)]
        flat = torch.cat([part.flatten() for part in parts])
        summed = sum_over_processes(self.accelerator, flat).split([p.numel() for p in parts])
        for part, sum_ in zip(parts, summed, strict=True):
            part.copy_(sum_.view_as(part))

    def _end_epoch(self) -> dict[str, Any]:
        """Evaluate on dev, keep the weights if they are the best so far, write metrics."""
        progress = self.progress
        rate = self.schedule.rate(progress.step - 1)
        with self.updates.averaged():
            metrics = self._dev_metrics()
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
            if self.settings.tensorboard:
                write_tensorboard(self.folder / "tensorboard", read_metrics(self.folder))
        self.reporter.epoch_done(line, self.run.task.metric, self.settings.epochs)
        progress.epoch, progress.batch = progress.epoch + 1, 0
        progress.loss, progress.chunks, progress.seconds = 0.0, 0, 0.0
        last = progress.epoch == self.settings.epochs or self.schedule.finished
        if last or self.checkpointer.is_due_after_epoch():
            self._save()
        return line

    def _dev_metrics(self) -> dict[str, float]:
        dev, precision = self.splits["dev"], self.settings.precision
        metrics = evaluate(self.model, self.run.task, dev, self.accelerator, precision)
        if not math.isfinite(metrics["loss"]):
            found = f"the dev loss is {metrics['loss']} in epoch {self.progress.epoch + 1}"
            raise InputError(f"{found}; the last checkpoint is kept")
        return metrics

    def _save(self) -> None:
        self._read_back()
        self.progress.schedule = self.schedule.state()
        if self.accelerator.is_main_process:
            self.checkpointer.save(self.progress, self.model, self.updates.optimizer)
        else:
            self.checkpointer.skip()

    def _finish(self) -> dict[str, dict[str, float]]:
        """Evaluate the best weights on all splits but train, in float32, and write the results."""
        best = deepcopy(self.model)
        weights = on_main_process(self.accelerator, lambda: read_tensors(self.folder / WEIGHTS))
        best.load_state_dict(weights)
        results = {
            name: evaluate(best, self.run.task, split, self.accelerator)
            for name, split in self.splits.items()
            if name != "train"
        }
        if self.accelerator.is_main_process:
            drop_metrics_after(self.folder, self.progress.epoch)
            best_epoch = (self.progress.best or {}).get("epoch")
            append_metrics(self.folder, {"final": results, "best_epoch": best_epoch})
            write_model_card(self.folder, self.run, results)
        return results
