"""From settings to a task."""

from __future__ import annotations

from probformer.config import (
    ClassificationSettings,
    CogsSettings,
    MaskedLMSettings,
    NERSettings,
    TaggingSettings,
    TaskSettings,
)
from probformer.data.vocabulary import Vocabulary
from probformer.tasks.classification import Classification
from probformer.tasks.cogs import Cogs
from probformer.tasks.mlm import MaskedLM
from probformer.tasks.ner import NER
from probformer.tasks.tagging import Tagging
from probformer.tasks.task import Task


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
