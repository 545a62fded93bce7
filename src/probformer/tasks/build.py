"""From settings to a task, and to the auxiliary objectives of its training."""

from __future__ import annotations

from collections.abc import Callable

from probformer.config import (
    ClassificationSettings,
    CogsSettings,
    MaskedLMSettings,
    NERSettings,
    ParsingSettings,
    TaggingSettings,
    TaskSettings,
    TrainingSettings,
)
from probformer.data.vocabulary import Vocabulary
from probformer.models.encoder import Encoder
from probformer.models.transformer import Transformer
from probformer.tasks.classification import Classification
from probformer.tasks.cogs import Cogs
from probformer.tasks.gold_heads import GoldHeadLoss
from probformer.tasks.mlm import MaskedLM
from probformer.tasks.ner import NER
from probformer.tasks.objective import Objective, WeightPenalty
from probformer.tasks.parsing import Parsing
from probformer.tasks.tagging import Tagging
from probformer.tasks.task import Task

MakeTask = Callable[[TaskSettings, Vocabulary], Task]
"""From settings and vocabulary to a task, as `build_task` does."""


def build_task(settings: TaskSettings, vocabulary: Vocabulary) -> Task:
    match settings:
        case MaskedLMSettings():
            return MaskedLM(settings, vocabulary)
        case TaggingSettings():
            return Tagging(settings, vocabulary)
        case NERSettings():
            return NER(settings, vocabulary)
        case ClassificationSettings():
            return Classification(vocabulary)
        case CogsSettings():
            return Cogs(settings, vocabulary)
        case ParsingSettings():
            return Parsing(settings, vocabulary)


def build_auxiliary(settings: TrainingSettings, encoder: Encoder | Transformer) -> list[Objective]:
    """The objectives that training adds to that of the task."""
    auxiliary: list[Objective] = []
    if settings.penalty:
        auxiliary.append(WeightPenalty(settings.penalty, encoder))
    if settings.gold_heads is not None:
        auxiliary.append(GoldHeadLoss(settings.gold_heads))
    return auxiliary
