"""The encoder alone, and with the heads of masked words, tags and labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import (
    BaseModelOutputWithPooling,
    MaskedLMOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)
from transformers.utils.generic import can_return_tuple

from probformer.config import (
    ClassificationSettings,
    MaskedLMSettings,
    TaggingSettings,
    to_dict,
)
from probformer.errors import require
from probformer.heads import TiedProjection, sentence_head, word_head
from probformer.hf.base import ProbformerPreTrainedModel
from probformer.hf.configuration import ProbformerConfig, classes_of
from probformer.tasks.labels import IGNORE


class ProbformerModel(ProbformerPreTrainedModel):
    """The encoder of any run."""

    _keys_to_ignore_on_load_unexpected: ClassVar[list[str]] = [r"^head\."]

    def __init__(self, config: ProbformerConfig) -> None:
        super().__init__(config)
        self.post_init()

    @classmethod
    def task_of(cls, config: ProbformerConfig) -> None:
        return None

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
    ) -> BaseModelOutputWithPooling:
        reading = self.read(input_ids, attention_mask, output_attentions, output_hidden_states)
        return BaseModelOutputWithPooling(
            last_hidden_state=reading.last_hidden_state,  # type: ignore[arg-type]
            pooler_output=reading.pooler_output,  # type: ignore[arg-type]
            hidden_states=reading.hidden_states,  # type: ignore[arg-type]
            attentions=reading.attentions,  # type: ignore[arg-type]
        )


class ProbformerForMaskedLM(ProbformerPreTrainedModel):
    """A word for each mask: all words but the mask itself, whose logit is the lowest number."""

    kinds = ("mlm",)

    def __init__(self, config: ProbformerConfig) -> None:
        super().__init__(config)
        self.head = word_head(self.encoder, self.mask)
        self.post_init()

    @property
    def mask(self) -> int:
        assert self.config.mask_token_id is not None
        return self.config.mask_token_id

    @classmethod
    def task_of(cls, config: ProbformerConfig) -> Mapping[str, Any]:
        _check_readout(cls, config, ("scores", "marginals"))
        if config.task is None:
            return to_dict(MaskedLMSettings())
        if config.task["kind"] not in cls.kinds:
            cls.refuse_task(config, "task={'kind': 'mlm'}")
        return config.task

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        num_items_in_batch: Tensor | None = None,
    ) -> MaskedLMOutput:
        """The loss is the mean over words whose label is not −100."""
        reading = self.read(input_ids, attention_mask, output_attentions, output_hidden_states)
        logits, loss = self._with_mask(self.head(reading.read)), None
        if labels is not None:
            self._check_labels(labels)
            given = {"logits": logits, "labels": labels, "vocab_size": self.config.vocab_size}
            loss = self.loss_function(**given, num_items_in_batch=num_items_in_batch)
        return MaskedLMOutput(
            loss=loss,
            logits=logits,
            hidden_states=reading.hidden_states,  # type: ignore[arg-type]
            attentions=reading.attentions,  # type: ignore[arg-type]
        )

    def _with_mask(self, logits: Tensor) -> Tensor:
        never = logits.new_full((*logits.shape[:-1], 1), torch.finfo(logits.dtype).min)
        return torch.cat([logits[..., : self.mask], never, logits[..., self.mask :]], dim=-1)

    def _check_labels(self, labels: Tensor) -> None:
        words = self.config.vocab_size
        right = (labels == IGNORE) | ((labels >= 0) & (labels < words) & (labels != self.mask))
        allowed = f"{IGNORE} or words, 0 … {words - 1} but {self.mask}, the mask"
        if not bool(right.all()):
            require(False, f"labels must be {allowed}, got {int(labels[~right][0])}")

    def resize_token_embeddings(
        self, new_num_tokens: int | None = None, *args: Any, **options: Any
    ) -> nn.Embedding:
        """The logits of new words begin as the mean of the others'."""
        embeddings = super().resize_token_embeddings(new_num_tokens, *args, **options)
        head, classes = self.head, self.config.vocab_size - 1
        assert isinstance(head, (nn.Linear, TiedProjection))
        head.bias = _resized(head.bias, classes)
        if isinstance(head, nn.Linear):
            head.weight, head.out_features = _resized(head.weight, classes), classes
        return embeddings


class ProbformerForTokenClassification(ProbformerPreTrainedModel):
    """A tag for each token; of a word of several pieces the first one counts."""

    kinds = ("tagging", "ner")

    def __init__(self, config: ProbformerConfig) -> None:
        super().__init__(config)
        self.head = nn.Linear(self.encoder.width, self.config.num_labels)
        self.post_init()

    @classmethod
    def task_of(cls, config: ProbformerConfig) -> Mapping[str, Any]:
        _check_readout(cls, config, ("scores", "marginals"))
        settings = _settings_of(cls, config) or to_dict(TaggingSettings())
        return {**settings, "tags": config.labels}

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        num_items_in_batch: Tensor | None = None,
    ) -> TokenClassifierOutput:
        """The loss is the mean over tokens whose label is not −100."""
        reading = self.read(input_ids, attention_mask, output_attentions, output_hidden_states)
        logits, loss = self.head(reading.read), None
        if labels is not None:
            given = {"logits": logits, "labels": labels, "config": self.config}
            loss = self.loss_function(**given, num_items_in_batch=num_items_in_batch)
        return TokenClassifierOutput(
            loss=loss,
            logits=logits,
            hidden_states=reading.hidden_states,  # type: ignore[arg-type]
            attentions=reading.attentions,  # type: ignore[arg-type]
        )


class ProbformerForSequenceClassification(ProbformerPreTrainedModel):
    """A label for each sentence, from the scores of its ROOT, or from CLS."""

    kinds = ("classification",)

    def __init__(self, config: ProbformerConfig) -> None:
        super().__init__(config)
        self.head = sentence_head(self.encoder, self.config.num_labels)
        self.post_init()

    @classmethod
    def task_of(cls, config: ProbformerConfig) -> Mapping[str, Any]:
        settings = _settings_of(cls, config) or to_dict(ClassificationSettings())
        _check_readout(cls, config, ("root", "cls"))
        return {**settings, "labels": config.labels}

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        num_items_in_batch: Tensor | None = None,
    ) -> SequenceClassifierOutput:
        """The loss is the mean over sentences."""
        reading = self.read(input_ids, attention_mask, output_attentions, output_hidden_states)
        logits, loss = self.head(reading.read), None
        if labels is not None:
            given = {"pooled_logits": logits, "labels": labels, "config": self.config}
            loss = self.loss_function(**given, num_items_in_batch=num_items_in_batch)
        return SequenceClassifierOutput(
            loss=loss,
            logits=logits,
            hidden_states=reading.hidden_states,  # type: ignore[arg-type]
            attentions=reading.attentions,  # type: ignore[arg-type]
        )


def _settings_of(
    cls: type[ProbformerPreTrainedModel], config: ProbformerConfig
) -> Mapping[str, Any] | None:
    """The task if a head of `cls` is for it; None if its labels ask for a head that is new."""
    names = config.labels
    fits = config.task is not None and config.task["kind"] in cls.kinds
    if not fits and names == classes_of(config.task):  # nobody gave other ones
        cls.refuse_task(config, "id2label")
    several = len(set(names)) == len(names) > 1
    require(several, f"id2label must have at least two labels, all different, got {names}")
    return config.task if fits else None


def _check_readout(
    cls: type[ProbformerPreTrainedModel], config: ProbformerConfig, allowed: tuple[str, str]
) -> None:
    found = config.encoder_settings.readout
    wanted = " or ".join(map(repr, allowed))
    require(found in allowed, f"{cls.__name__} needs encoder.readout {wanted}, got {found!r}")


@torch.no_grad()
def _resized(parameter: nn.Parameter, rows: int) -> nn.Parameter:
    """The first rows, and the mean of all for those that are new."""
    missing = max(rows - len(parameter), 0)
    new = parameter.mean(0, keepdim=True).expand(missing, *parameter.shape[1:])
    return nn.Parameter(torch.cat([parameter[:rows], new]), parameter.requires_grad)
