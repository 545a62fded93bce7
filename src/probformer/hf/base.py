"""The base class of all models of Probformer in Hugging Face transformers.

Weights have the names of a run folder, `encoder.…` and `head.…`, and the modules are those of
`probformer.models`, so numbers are the same.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import safetensors
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from probformer.errors import InputError, require
from probformer.hf.configuration import ProbformerConfig
from probformer.hf.folders import check_description, check_folder, refuse_misfits
from probformer.hf.outputs import EncoderOutputs, encode
from probformer.models.build import build_encoder

_OF_SENTENCES = ("encoder.potentials.root.", "encoder.cls")
"""Weights that an encoder has only if its read-out classifies whole sentences."""


class ProbformerPreTrainedModel(PreTrainedModel):
    """An encoder, with loading, saving and resizing as transformers define them."""

    config: ProbformerConfig
    config_class = ProbformerConfig
    supports_gradient_checkpointing = True
    accepts_loss_kwargs = True  # the Trainer passes `num_items_in_batch`

    kinds: ClassVar[tuple[str, ...]] = ()
    """The kinds of task whose read-out the model has."""

    def __init__(self, config: ProbformerConfig) -> None:
        config = copy.deepcopy(config)
        config.task = self.task_of(config)
        if config.mask_token_id is None:
            config.mask_token_id = config.vocab_size - 1
        super().__init__(config)
        self.encoder = build_encoder(config.encoder_settings, config.vocab_size)
        self.gradient_checkpointing = False

    @classmethod
    def task_of(cls, config: ProbformerConfig) -> Mapping[str, Any] | None:
        """The task of a model of this class, with its classes.

        Raises:
            InputError: The configuration is for another task.
        """
        raise NotImplementedError

    @classmethod
    def refuse_task(cls, config: ProbformerConfig, remedy: str) -> None:
        kind = (config.task or {}).get("kind")
        what = "no task" if kind is None else f"the task {kind!r}"
        needed = f"{cls.__name__} needs a read-out for its task, but the model has {what}"
        raise InputError(f"{needed}: pass {remedy} for a new read-out on its encoder")

    def _init_weights(self, module: nn.Module) -> None:
        """Does nothing: weights are initialised by constructors and by `from_pretrained`."""

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: Any,
        *args: Any,
        ignore_mismatched_sizes: bool = False,
        output_loading_info: bool = False,
        use_safetensors: bool = True,
        **options: Any,
    ) -> Any:
        """Load a run folder or a model of the Hub.

        Args:
            pretrained_model_name_or_path: A folder or a name, or None with `config` and
                `state_dict` among the options.
            *args: As in transformers.
            ignore_mismatched_sizes: Whether weights of another shape are initialised anew.
            output_loading_info: Whether to return the loading info of transformers, too.
            use_safetensors: Must be true.
            **options: As in transformers.

        Returns:
            The model. A read-out of another task is replaced by a newly initialised one.

        Raises:
            InputError: Weights are missing, unknown, of another shape, or not in safetensors.
        """
        require(
            bool(use_safetensors),
            "use_safetensors must be true: only weights in safetensors are loaded",
        )
        name = pretrained_model_name_or_path
        if name is None:  # the weights are those of `state_dict`
            stored = {"task": options["config"].task}
        else:
            if Path(name).is_dir():
                check_folder(Path(name))
            stored, _ = ProbformerConfig.get_config_dict(name, **options)
            check_description(str(name), stored)
        try:
            loaded: Any = super().from_pretrained(
                name,
                *args,
                ignore_mismatched_sizes=True,  # they are refused below, in one sentence
                output_loading_info=True,
                use_safetensors=True,
                **options,
            )
        except safetensors.SafetensorError as error:
            message = f"{name}: the weights cannot be read as safetensors: {error}"
            raise InputError(message) from None
        model, info = loaded
        info = {**info, "mismatched_keys": {_name(key) for key in info["mismatched_keys"]}}
        kind = (stored.get("task") or {}).get("kind")
        new = model._new_weights(kind, info, ignore_mismatched_sizes)
        misfits = {
            "missing": set(info["missing_keys"]) - new,
            "unknown": {key for key in info["unexpected_keys"] if not model._drops(kind, key)},
            "of another shape": info["mismatched_keys"] - new,
        }
        refuse_misfits(str(name or "state_dict"), misfits)
        model._initialise(new)
        return (model, info) if output_loading_info else model

    def _new_weights(self, kind: str | None, info: Mapping[str, Any], resized: bool) -> set[str]:
        """Names of the weights that a model stored for a task of this kind does not have."""
        new = set(info["mismatched_keys"]) if resized else set()
        if kind not in self.kinds:
            new |= {key for key in self.state_dict() if key.startswith("head.")}
            new |= {key for key in info["missing_keys"] if key.startswith(_OF_SENTENCES)}
        return new

    def _drops(self, kind: str | None, key: str) -> bool:
        return kind not in self.kinds and key.startswith("head.")

    @torch.no_grad()
    def _initialise(self, names: set[str]) -> None:
        """Initialise the weights of these names as for training."""
        if names:
            initial = type(self)(self.config).state_dict()
            own = self.state_dict()
            for name in names:
                own[name].copy_(initial[name])

    @property
    def mask(self) -> int:
        """The id of the token "<mask>"."""
        assert self.config.mask_token_id is not None
        return self.config.mask_token_id

    def get_input_embeddings(self) -> nn.Embedding:
        return self.encoder.embedding

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace the weights, not the module, as a read-out may be tied to it."""
        assert isinstance(value, nn.Embedding)
        own = self.get_input_embeddings()
        own.weight, own.num_embeddings = value.weight, value.num_embeddings

    def resize_token_embeddings(
        self, new_num_tokens: int | None = None, *args: Any, **options: Any
    ) -> nn.Embedding:
        """Resize as in transformers; new words get ids after that of the mask, which stays."""
        message = f"new_num_tokens must be greater than {self.mask}, the id of the mask"
        require(
            new_num_tokens is None or new_num_tokens > self.mask, f"{message}, got {new_num_tokens}"
        )
        return super().resize_token_embeddings(new_num_tokens, *args, **options)

    def encode(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        output_attentions: bool | None,
        output_hidden_states: bool | None,
    ) -> EncoderOutputs:
        words = input_ids.long()
        shape = tuple(words.shape)
        require(words.dim() == 2, f"input_ids must have shape (batch, words), got {shape}")
        mask = torch.ones_like(words) if attention_mask is None else attention_mask
        shapes = f"{shape}, got {tuple(mask.shape)}"
        require(mask.shape == words.shape, f"attention_mask must have input_ids' shape {shapes}")
        config = self.config
        with_heads = config.output_attentions if output_attentions is None else output_attentions
        with_states = (
            config.output_hidden_states if output_hidden_states is None else output_hidden_states
        )
        return encode(
            self.encoder,
            words,
            mask.bool(),
            attentions=bool(with_heads),
            hidden_states=bool(with_states),
            save_memory=self.gradient_checkpointing and self.training,
        )


def _name(key: Any) -> str:
    """Of a weight; transformers may give a tuple of its name and shapes."""
    return key if isinstance(key, str) else key[0]
