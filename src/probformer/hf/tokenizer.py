"""The tokenizer.json of a run folder as a tokenizer of transformers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

from probformer.data.vocabulary import MASK, UNKNOWN
from probformer.errors import InputError, require
from probformer.runs.files import read_json


class ProbformerTokenizer(PreTrainedTokenizerFast):
    """Splits text into the same words and pieces as `Vocabulary`.

    The padding token is "<unk>", as a vocabulary has no other entry for it: the attention mask
    tells padding from words.

    Args:
        *args: As in transformers.
        unk_token: The token of unknown words.
        mask_token: The token of masked words.
        pad_token: The token of padding.
        **options: As in transformers, such as `tokenizer_file`.
    """

    def __init__(
        self,
        *args: Any,
        unk_token: Any = UNKNOWN,
        mask_token: Any = MASK,
        pad_token: Any = UNKNOWN,
        **options: Any,
    ) -> None:
        special = {"unk_token": unk_token, "mask_token": mask_token, "pad_token": pad_token}
        super().__init__(*args, **special, **options)

    @classmethod
    def convert_to_native_format(cls, trust_remote_code: bool = False, **options: Any) -> Any:
        """Nothing to convert: tokenizer.json is complete."""
        return options

    def _add_tokens(self, new_tokens: list[Any], special_tokens: bool = False) -> int:
        """Entries of the vocabulary are not added again: added tokens match inside words."""
        known = self.get_vocab()
        new = [token for token in new_tokens if str(token) not in known]
        return super()._add_tokens(new, special_tokens) if new else 0

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args: Any, **options: Any) -> Any:
        """Load the tokenizer of a run folder, or of a model of the Hub.

        Raises:
            InputError: The folder has no tokenizer.json, or one that does not fit its model.
        """
        folder = Path(pretrained_model_name_or_path)
        if folder.is_dir() and not (folder / "tokenizer.json").is_file():
            raise InputError(f"{folder}: has no vocabulary: tokenizer.json is missing")
        tokenizer = super().from_pretrained(pretrained_model_name_or_path, *args, **options)
        if (folder / "config.json").is_file():
            _check_fit(folder, tokenizer)
        return tokenizer


def _check_fit(folder: Path, tokenizer: Any) -> None:
    """Refuse a tokenizer whose size or mask differ from those of the model beside it."""
    config = read_json(folder / "config.json")
    words = config.get("vocabulary")
    if config.get("model_type") != "probformer" or not isinstance(words, int):
        return
    mask = config.get("mask_token_id")
    mask = words - 1 if mask is None else mask
    found = f"{len(tokenizer)} entries and the mask at {tokenizer.mask_token_id}"
    message = f"tokenizer.json has {found}, the model {words} and {mask}"
    fits = len(tokenizer) <= words and tokenizer.mask_token_id == mask
    require(fits, f"{os.fspath(folder)}: the tokenizer does not fit the model: {message}")
