"""The encoder alone, and with read-outs for masked words, tags and sentence labels."""

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
    """The encoder of any run, without a read-out.

    Args:
        config: Its settings.
    """

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
        """The representation of each word and, with ROOT or CLS, that of the sentence.

        Args:
            input_ids: (B, n), the ids of words.
            attention_mask: (B, n), 1 for words and 0 for padding on either side; all words if None.
            output_attentions: Whether to return the head marginals of each iteration.
            output_hidden_states: Whether to return the scores after each iteration.

        Returns:
            `last_hidden_state` (B, n, d), `pooler_output` (B, d_root), `hidden_states` and
            `attentions`.

        Raises:
            InputError: Shapes do not fit.
        """
        outputs = self.encode(input_ids, attention_mask, output_attentions, output_hidden_states)
        found: dict[str, Any] = {
            "last_hidden_state": outputs.last_hidden_state,
            "pooler_output": outputs.pooler_output,
        }
        return BaseModelOutputWithPooling(**found, **outputs.traces())


class _WithReadout(ProbformerPreTrainedModel):
    """An encoder with a read-out, and the loss of transformers for its kind."""

    head: nn.Module
    output: ClassVar[type[ModelOutput]]
    logits_name = "logits"
    """The name of the logits among the arguments of the loss."""

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
        """Logits, and the loss if there are labels.

        Args:
            input_ids: (B, n), the ids of words.
            attention_mask: (B, n), 1 for words and 0 for padding on either side; all words if None.
            labels: (B, n) or (B,), the classes; −100 where there is none.
            output_attentions: Whether to return the head marginals of each iteration.
            output_hidden_states: Whether to return the scores after each iteration.
            num_items_in_batch: The loss is the sum over labels divided by it; by default the mean.

        Returns:
            `loss`, `logits`, `hidden_states` and `attentions`.

        Raises:
            InputError: Shapes or labels do not fit.
        """
        outputs = self.encode(input_ids, attention_mask, output_attentions, output_hidden_states)
        logits, loss = self.logits(outputs.representation), None
        if labels is not None:
            self.check_labels(labels)
            loss = self.loss_function(
                **{self.logits_name: logits},
                labels=labels,
                config=self.config,
                vocab_size=self.config.vocab_size,
                num_items_in_batch=num_items_in_batch,
            )
        return self.output(loss=loss, logits=logits, **outputs.traces())

    def logits(self, representation: Tensor) -> Tensor:
        return self.head(representation)

    def check_labels(self, labels: Tensor) -> None:
        """Refuse labels that are no classes; here the loss checks them."""


class ProbformerForMaskedLM(_WithReadout):
    """Predicts the word of each mask; the logit of the mask itself is the lowest number.

    Args:
        config: Settings of the encoder; `task` may have `tied`.
    """

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

    def logits(self, representation: Tensor) -> Tensor:
        """(B, n, words): the read-out has no logit for the mask; it gets the lowest number."""
        known = self.head(representation)
        never = known.new_full((*known.shape[:-1], 1), torch.finfo(known.dtype).min)
        return torch.cat([known[..., : self.mask], never, known[..., self.mask :]], dim=-1)

    def check_labels(self, labels: Tensor) -> None:
        words = self.config.vocab_size
        right = (labels == IGNORE) | ((labels >= 0) & (labels < words) & (labels != self.mask))
        allowed = f"{IGNORE} or words, 0 … {words - 1} but not {self.mask}, the mask"
        if not bool(right.all()):
            raise InputError(f"labels must be {allowed}, got {int(labels[~right][0])}")

    def resize_token_embeddings(
        self, new_num_tokens: int | None = None, *args: Any, **options: Any
    ) -> nn.Embedding:
        """Resize as in transformers; weights of new words start at the mean of the others."""
        embeddings = super().resize_token_embeddings(new_num_tokens, *args, **options)
        head, classes = self.head, self.config.vocab_size - 1
        assert isinstance(head, (nn.Linear, TiedProjection))
        head.bias = _resized(head.bias, classes)
        if isinstance(head, nn.Linear):
            head.weight, head.out_features = _resized(head.weight, classes), classes
        return embeddings


class ProbformerForTokenClassification(_WithReadout):
    """Predicts a tag for each token; in training, that of a word is at its first piece.

    Args:
        config: Settings of the encoder; `id2label` has the tags.
    """

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


class ProbformerForSequenceClassification(_WithReadout):
    """Predicts a label for each sentence, from the scores of its ROOT, or from CLS.

    Args:
        config: Settings of the encoder, with `readout` "root" or "cls"; `id2label` has the labels.
    """

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
    """The task if `cls` is for it; None if `id2label` has the classes for a new one."""
    names = config.labels
    fits = config.task is not None and config.task["kind"] in cls.kinds
    if not fits and names == classes_of(config.task):  # id2label was not given
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
    """The first rows; new ones are the mean of all."""
    missing = max(rows - len(parameter), 0)
    new = parameter.mean(0, keepdim=True).expand(missing, *parameter.shape[1:])
    return nn.Parameter(torch.cat([parameter[:rows], new]), parameter.requires_grad)
