"""Training, as the paper did it: Adam, chunks whose gradients add up, clipping, a plateau on dev.

Nothing random has a state. The order of sentences, masks and dropout are functions of the seed and
of the place in training, so a run that is stopped and resumed, or that is shared by several
processes, goes the same way as one that is not.
"""

from __future__ import annotations

import math
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import Tensor

from probformer.config import EncoderSettings, RunSettings, TransformerSettings
from probformer.data.batches import Indices, training_batches
from probformer.data.encoded import EncodedSplit
from probformer.data.randomness import Purpose, derive_seed
from probformer.encoder import Encoder
from probformer.errors import InputError
from probformer.tasks.task import Batch, gold_head_loss
from probformer.training.captured import CapturedGradients, Gradients
from probformer.training.checkpoints import (
    Progress,
    load_checkpoint,
    restore_best,
    save_checkpoint,
)
from probformer.training.curves import write_curves
from probformer.training.evaluation import evaluate
from probformer.training.processes import sum_over_processes
from probformer.training.report import Reporter
from probformer.training.run_folder import (
    WEIGHTS,
    Run,
    append_metrics,
    forget_metrics_after,
    load_run,
    read_metrics,
    write_model_card,
    write_weights,
)
from probformer.training.schedule import build_schedule
from probformer.training.stopping import Stopped, StopSignal


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

    def __post_init__(self) -> None:
        self.settings: RunSettings = self.run.settings
        self.training = self.settings.training
        self.model = self.run.model.to(self.accelerator.device)
        for parameter in self.model.parameters():  # a process may have no chunk of a batch
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(),
            lr=self.training.learning_rate,
            betas=(0.9, 0.999),
            eps=1e-9,
            weight_decay=self.training.weight_decay,
            fused=self.accelerator.device.type == "cuda" or None,
        )
        self.gradients = self._build_gradients()
        batches = math.ceil(len(self.splits["train"]) / self.training.batch)
        self.schedule = build_schedule(
            self.training.schedule, self.training.learning_rate, batches * self.training.epochs
        )
        self._saved = time.monotonic()

    def _build_gradients(self) -> Gradients:
        encoder = self.settings.encoder
        waits = isinstance(encoder, EncoderSettings) and encoder.inference.tolerance is not None
        if self.accelerator.device.type != "cuda" or waits:
            return Gradients(self.chunk_loss)
        longest = None
        if isinstance(encoder, TransformerSettings) and encoder.positions == "learned":
            longest = encoder.longest
        return CapturedGradients(self.chunk_loss, [*self.model.parameters()], longest)

    def resume(self) -> bool:
        """Go back to the last whole checkpoint; false if there is none."""
        states = self.folder / "state"
        found = load_checkpoint(states, self.model, self.optimizer, self.reporter.warn)
        if found is not None:
            path, self.progress = found
            self.schedule.load_state(self.progress.schedule)
            if self.accelerator.is_main_process:
                restore_best(path, self.folder / WEIGHTS)
        if self.accelerator.is_main_process:
            forget_metrics_after(self.folder, self.progress.epoch)
        return found is not None

    def train(self) -> dict[str, dict[str, float]]:
        """All epochs that are left; then the figures of the best one."""
        if self.progress.step == 0:
            self._save()  # the weights that the run starts with may come from elsewhere
        while self.progress.epoch < self.training.epochs and not self.schedule.finished:
            self._epoch()
            self._judge()
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
        begin = time.monotonic() - progress.seconds
        while progress.batch < len(batches):
            stop = self._update(batches[progress.batch])
            progress.batch += 1
            progress.step += 1
            progress.seconds = time.monotonic() - begin
            speed = progress.batch * self.training.batch / max(progress.seconds, 1e-9)
            self.reporter.batch_done(progress, len(batches), self.training.epochs, speed)
            if stop or time.monotonic() - self._saved > 60 * self.training.checkpoint_minutes:
                self._save()
            if stop:
                raise Stopped(self.stop.received or signal.SIGTERM)

    def _update(self, indices: Indices) -> bool:
        """Chunks of a batch each give a gradient; their sum is clipped and given to Adam.

        Returns whether to stop, which all processes agree about.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = self.schedule.rate(self.progress.step)
        self.model.train()
        self.optimizer.zero_grad(set_to_none=False)
        size = self.training.chunk or self.training.batch
        chunks = [indices[start : start + size] for start in range(0, len(indices), size)]
        loss = torch.zeros((), device=self.accelerator.device)
        for number, chunk in enumerate(chunks):
            if number % self.accelerator.num_processes == self.accelerator.process_index:
                torch.manual_seed(
                    derive_seed(self.settings.seed, Purpose.DROPOUT, self.progress.step, number)
                )
                loss += self.gradients.add(self._batch_of(chunk))
        self._add_up_gradients()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.training.clip)
        stop = float(self.stop.received is not None)
        found = sum_over_processes(self.accelerator, torch.tensor([loss.item(), stop]))
        total, stop = found.tolist()
        for name, value in (("loss", total), ("gradient's norm", norm.item())):
            if not math.isfinite(value):
                place = f"epoch {self.progress.epoch + 1}, batch {self.progress.batch + 1}"
                advice = "a lower training.learning_rate may help; the last checkpoint is kept"
                raise InputError(f"the {name} is {value} in {place}: {advice}")
        self.optimizer.step()
        self.progress.loss += total
        self.progress.chunks += len(chunks)
        return stop > 0

    def _batch_of(self, indices: Indices) -> Batch:
        split, epoch = self.splits["train"], self.progress.epoch
        batch = self.run.task.training_batch(split, indices, epoch, self.settings.seed)
        return batch.to(self.accelerator.device)

    def chunk_loss(self, batch: Batch) -> Tensor:
        """The task's mean loss over a chunk, the penalty, and the loss of gold heads if asked."""
        task, training = self.run.task, self.training
        torch.backends.cuda.matmul.allow_tf32 = training.precision == "tf32"
        half = training.precision == "bf16"
        with torch.autocast(self.accelerator.device.type, torch.bfloat16, enabled=half):
            heads = training.gold_heads is not None
            read, posterior = self.model(batch.words, batch.mask, attention=heads)
            loss = task.loss(self.model, read, batch)
        if training.penalty and isinstance(self.model.encoder, Encoder):
            loss = loss + training.penalty * self.model.encoder.penalty()
        if training.gold_heads is not None:
            channel, weight = training.gold_heads.channel, training.gold_heads.weight
            loss = loss + weight * gold_head_loss(posterior, batch.heads, channel)
        return loss

    def _add_up_gradients(self) -> None:
        if self.accelerator.num_processes == 1:
            return
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        summed = sum_over_processes(self.accelerator, flat)
        sizes = [gradient.numel() for gradient in gradients]
        for gradient, part in zip(gradients, summed.split(sizes), strict=True):
            gradient.copy_(part.view_as(gradient))

    def _judge(self) -> None:
        """Dev metrics after an epoch: schedule, best weights, a line, a checkpoint."""
        progress = self.progress
        rate = self.schedule.rate(progress.step - 1)
        metrics = evaluate(self.model, self.run.task, self.splits["dev"], self.accelerator)
        if not math.isfinite(metrics["loss"]):
            found = f"the dev loss is {metrics['loss']} in epoch {progress.epoch + 1}"
            raise InputError(f"{found}; the last checkpoint is kept")
        best = progress.best
        if best is None or (metrics["score"], -metrics["loss"]) > (best["score"], -best["loss"]):
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
        self._save()

    def _save(self) -> None:
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

    def _finish(self) -> dict[str, dict[str, float]]:
        self.accelerator.wait_for_everyone()
        best = load_run(self.folder).model.to(self.accelerator.device)
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
