"""The encoded splits of a run, and checks that task and model can work with them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from probformer.config import RunSettings
from probformer.data.corpus import FileSplit
from probformer.data.encoded import EncodedSplit
from probformer.data.sentence import Sentence
from probformer.errors import counted, require
from probformer.sentinels import UNOBSERVED
from probformer.tasks import Objective, Task
from probformer.training.progress import Reporter


def encode_split(
    name: str, sentences: Iterable[Sentence], task: Task, reporter: Reporter
) -> EncodedSplit:
    """Encode a split; report its size and its warnings."""
    split = task.encode(sentences)
    require(len(split) > 0, f"{name}: has no sentence")
    unknown = int(np.count_nonzero(split.fields["words"] == task.vocabulary.unk))
    size = f"{counted(len(split), 'sentence')}, {counted(split.tokens, 'token')}"
    reporter.say(f"{name}: {size}, {unknown:,} of them unknown")
    for warning in (*skipped_lines(sentences), *task.warnings()):
        reporter.warn(f"{name}: {warning}")
    return split


def skipped_lines(sentences: object) -> list[str]:
    """Warnings about what the latest pass over a split of files left out."""
    warnings = []
    for file in sentences.files if isinstance(sentences, FileSplit) else ():
        if bad := file.report.skipped:
            first = "; ".join(f"line {line}: {reason}" for line, reason in file.report.problems)
            found = f"left out {counted(bad, 'sentence')} with bad lines"
            warnings.append(f"{file.path}: {found}: {first}")
    return warnings


def check_lengths(settings: RunSettings, splits: dict[str, EncodedSplit]) -> None:
    """Check that every sentence fits the model's position table, if it has one."""
    positions = settings.encoder.max_words
    if positions is None:
        return
    for name, split in splits.items():
        longest = int(split.lengths.argmax())
        length = int(split.lengths[longest])
        table = f"the position table has places for {positions} (encoder.max_length)"
        require(length <= positions, f"{name}: sentence {longest + 1} has {length} tokens, {table}")


def check_metrics(task: Task, splits: dict[str, EncodedSplit]) -> None:
    """Check that the task's metrics can be computed on every split but train."""
    for name, split in splits.items():
        reason = None if name == "train" else task.why_no_metrics(split)
        require(reason is None, f"{name}: {reason}")


def check_gold_heads(
    objectives: Iterable[Objective], split: EncodedSplit, reporter: Reporter
) -> None:
    """Check that the training split has gold heads if an objective needs them."""
    for objective in objectives:
        if objective.needs_heads:
            known = float(np.mean(np.asarray(split.fields["heads"]) != UNOBSERVED))
            message = "needs data with heads, and a vocabulary that does not split words"
            require(known > 0, f"{objective.name} {message}")
            if known < 1:
                reporter.warn(f"{100 * known:.0f} % of the training tokens have a gold head")
