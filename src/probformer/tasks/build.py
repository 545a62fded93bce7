"""From settings to a task."""

from __future__ import annotations

from probformer.config import MaskedLMSettings, TaggingSettings, TaskSettings
from probformer.data.vocabulary import Vocabulary
from probformer.tasks.mlm import MaskedLM
from probformer.tasks.tagging import Tagging
from probformer.tasks.task import Task


def build_task(settings: TaskSettings, vocabulary: Vocabulary) -> Task:
    match settings:
        case MaskedLMSettings():
            return MaskedLM(settings, vocabulary)
        case TaggingSettings():
            return Tagging(settings, vocabulary)
