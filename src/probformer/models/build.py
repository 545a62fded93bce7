"""From settings to an encoder."""

from __future__ import annotations

from probformer.config import EncoderSettings, TransformerSettings
from probformer.models.encoder import Encoder
from probformer.models.transformer import Transformer


def build_encoder(
    settings: EncoderSettings | TransformerSettings, vocabulary: int
) -> Encoder | Transformer:
    if isinstance(settings, TransformerSettings):
        return Transformer(vocabulary, settings)
    return Encoder(vocabulary, settings)
