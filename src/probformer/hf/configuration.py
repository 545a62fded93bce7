"""The config.json of a run folder as a configuration of transformers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformers import PretrainedConfig

from probformer.config import EncoderSettings, TransformerSettings, to_dict
from probformer.config.reading import Settings
from probformer.errors import InputError, require, require_whole
from probformer.runs.run_folder import FORMAT_VERSION, encoder_settings


class ProbformerConfig(PretrainedConfig):
    """The configuration of a run: `encoder` and `task` are tables of its config.json.

    `encoder_settings` is `encoder` as an object. `id2label` holds the classes of the task: setting
    `task` sets it, and a model takes the classes of its task from it.

    Args:
        vocabulary: The number of words, also called `vocab_size`.
        encoder: The settings of the encoder; the defaults of `EncoderSettings` if None.
        task: The settings of the task with its classes; None for an encoder alone.
        format_version: Of the run folder.
        mask_token_id: The id of "<mask>"; of the last word if None.
        pad_token_id: By default that of "<unk>"; only the attention mask tells what is padding.
        id2label: The names of classes by number; those of the task if None.
        num_labels: The number of classes, if they have no names.
        **options: As in transformers.

    Raises:
        InputError: Settings are unknown or out of range, or the format version is another one.
    """

    model_type = "probformer"
    attribute_map = {"vocab_size": "vocabulary"}  # noqa: RUF012  as transformers declares it

    def __init__(
        self,
        vocabulary: int = 10_000,
        encoder: Mapping[str, Any] | EncoderSettings | TransformerSettings | None = None,
        task: Mapping[str, Any] | None = None,
        format_version: int = FORMAT_VERSION,
        mask_token_id: int | None = None,
        pad_token_id: int = 0,
        id2label: Mapping[Any, str] | None = None,
        num_labels: int | None = None,
        **options: Any,
    ) -> None:
        known = f"this version reads {FORMAT_VERSION}"
        got = f"config.json has the format version {format_version!r}, {known}"
        require(format_version == FORMAT_VERSION, got)
        self.format_version = format_version
        self.vocabulary = vocabulary
        if encoder is None or isinstance(encoder, Settings):
            encoder = to_dict(encoder or EncoderSettings())
        self.encoder = dict(encoder)
        self.mask_token_id, self.pad_token_id = mask_token_id, pad_token_id
        self.task = task
        labels = classes_of(task) if id2label is None else list(id2label.values())
        if num_labels is not None and num_labels != len(labels):
            labels = [f"LABEL_{number}" for number in range(num_labels)]
        options.pop("label2id", None)  # the inverse of id2label
        super().__init__(id2label=dict(enumerate(labels)), **options)
        require_whole("vocab_size", self.vocab_size)
        _ = self.encoder_settings  # refuses wrong settings

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "task":
            self.id2label = dict(enumerate(classes_of(value)))
        if name == "id2label" and value is not None:
            super().__setattr__("label2id", {label: int(number) for number, label in value.items()})

    @property
    def encoder_settings(self) -> EncoderSettings | TransformerSettings:
        try:
            return encoder_settings(self.encoder)
        except (KeyError, TypeError) as error:
            message = "the encoder's kind must be 'pt' or 'transformer'"
            raise InputError(f"{message}, got {self.encoder!r} ({error!r})") from None

    @property
    def labels(self) -> list[str]:
        """The names of the classes, in the order of their numbers."""
        by_number = {int(number): name for number, name in (self.id2label or {}).items()}
        return [by_number[number] for number in sorted(by_number)]

    @property
    def hidden_size(self) -> int:
        return self.encoder_settings.hidden_size

    @property
    def num_hidden_layers(self) -> int:
        """Mean-field iterations, or layers."""
        return self.encoder_settings.steps

    @property
    def num_attention_heads(self) -> int:
        return self.encoder_settings.channels


def classes_of(task: Mapping[str, Any] | None) -> list[str]:
    """The names of a task's classes; none if they are words, or of several kinds."""
    found = (task or {}).get("tags", (task or {}).get("labels", []))
    return list(found) if isinstance(found, list) else []
