"""From settings to an encoder of either kind."""

from __future__ import annotations

from probformer.config import EncoderSettings, TransformerSettings
from probformer.models.encoder import Encoder
from probformer.models.transformer import Transformer


def build_encoder(
    settings: EncoderSettings | TransformerSettings, vocabulary: int
) -> Encoder | Transformer:
    """An encoder with initial weights.

    Args:
        settings: Their class decides the kind of encoder.
        vocabulary: The number of words, special ones included.

    Returns:
        A probabilistic transformer for `EncoderSettings`, a transformer for `TransformerSettings`.
    """
    if isinstance(settings, TransformerSettings):
        return Transformer(vocabulary, settings)
    return Encoder(vocabulary, settings)
