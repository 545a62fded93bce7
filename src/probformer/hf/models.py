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
from transformers.utils.generic import ModelOutput, can_return_tuple

from probformer.config import (
    ClassificationSettings,
    MaskedLMSettings,
    TaggingSettings,
    to_dict,
)
from probformer.errors import InputError, require
from probformer.hf.base import ProbformerPreTrainedModel
from probformer.hf.configuration import ProbformerConfig, classes_of
from probformer.models.readout import TiedProjection, sentence_readout, word_readout
from probformer.tasks.labels import IGNORE


class ProbformerModel(ProbformerPreTrainedModel):
    """The encoder of any run."""

    _keys_to_ignore_on_load_unexpected = [r"^head\."]  # noqa: RUF012  as transformers declares it

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
        found: dict[str, Any] = {
            "last_hidden_state": reading.last_hidden_state,
            "pooler_output": reading.pooler_output,
        }
        return BaseModelOutputWithPooling(**found, **reading.traces())


class _WithHead(ProbformerPreTrainedModel):
    """An encoder with a head on top, and transformers' own loss for its kind."""

    head: nn.Module
    output: ClassVar[type[ModelOutput]]
    logits_name = "logits"
    """What transformers' loss calls them."""

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        num_items_in_batch: Tensor | None = None,
    ) -> ModelOutput:
        """The loss is the mean over labels other than −100, or their sum / `num_items_in_batch`."""
        reading = self.read(input_ids, attention_mask, output_attentions, output_hidden_states)
        logits, loss = self.logits(reading.read), None
        if labels is not None:
            self.check_labels(labels)
            loss = self.loss_function(
                **{self.logits_name: logits},
                labels=labels,
                config=self.config,
                vocab_size=self.config.vocab_size,
                num_items_in_batch=num_items_in_batch,
            )
        return self.output(loss=loss, logits=logits, **reading.traces())

    def logits(self, read: Tensor) -> Tensor:
        return self.head(read)

    def check_labels(self, labels: Tensor) -> None:
        """Classes are checked where the loss is computed."""


class ProbformerForMaskedLM(_WithHead):
    """A word for each mask: all words but the mask itself, whose logit is the lowest number."""

    kinds = ("mlm",)
    output = MaskedLMOutput

    def __init__(self, config: ProbformerConfig) -> None:
        super().__init__(config)
        self.head = word_readout(self.encoder, self.mask, (self.config.task or {}).get("tied"))
        self.post_init()

    @classmethod
    def task_of(cls, config: ProbformerConfig) -> Mapping[str, Any]:
        _check_readout(cls, config, ("scores", "marginals"))
        if config.task is None:
            return to_dict(MaskedLMSettings())
        if config.task["kind"] not in cls.kinds:
            cls.refuse_task(config, "task={'kind': 'mlm'}")
        return config.task

    def logits(self, read: Tensor) -> Tensor:
        """Of all words, though the head knows no mask: where it belongs, none is ever chosen."""
        known = self.head(read)
        never = known.new_full((*known.shape[:-1], 1), torch.finfo(known.dtype).min)
        return torch.cat([known[..., : self.mask], never, known[..., self.mask :]], dim=-1)

    def check_labels(self, labels: Tensor) -> None:
        words = self.config.vocab_size
        right = (labels == IGNORE) | ((labels >= 0) & (labels < words) & (labels != self.mask))
        allowed = f"{IGNORE} or words, 0 … {words - 1} but {self.mask}, the mask"
        if not bool(right.all()):
            raise InputError(f"labels must be {allowed}, got {int(labels[~right][0])}")

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


class ProbformerForTokenClassification(_WithHead):
    """A tag for each token; of a word of several pieces the first one counts."""

    kinds = ("tagging", "ner")
    output = TokenClassifierOutput

    def __init__(self, config: ProbformerConfig) -> None:
        super().__init__(config)
        self.head = nn.Linear(self.encoder.width, len(self.config.labels))
        self.post_init()

    @classmethod
    def task_of(cls, config: ProbformerConfig) -> Mapping[str, Any]:
        _check_readout(cls, config, ("scores", "marginals"))
        settings = _settings_of(cls, config) or to_dict(TaggingSettings())
        return {**settings, "tags": config.labels}


class ProbformerForSequenceClassification(_WithHead):
    """A label for each sentence, from the scores of its ROOT, or from CLS."""

    kinds = ("classification",)
    output = SequenceClassifierOutput
    logits_name = "pooled_logits"

    def __init__(self, config: ProbformerConfig) -> None:
        super().__init__(config)
        self.head = sentence_readout(self.encoder, len(self.config.labels))
        self.post_init()

    @classmethod
    def task_of(cls, config: ProbformerConfig) -> Mapping[str, Any]:
        settings = _settings_of(cls, config) or to_dict(ClassificationSettings())
        _check_readout(cls, config, ("root", "cls"))
        return {**settings, "labels": config.labels}


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
def _resized(parameter: Tensor, rows: int) -> nn.Parameter:
    """The first rows, and the mean of all for those that are new."""
    missing = max(rows - len(parameter), 0)
    new = parameter.mean(0, keepdim=True).expand(missing, *parameter.shape[1:])
    return nn.Parameter(torch.cat([parameter[:rows], new]), parameter.requires_grad)
