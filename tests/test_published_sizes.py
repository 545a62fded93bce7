"""The published encoders have the published number of parameters."""

import pytest

from probformer import Encoder, Transformer
from probformer.config import (
    EncoderSettings,
    FullSettings,
    RootSettings,
    TransformerSettings,
    UVSettings,
    UVWSettings,
)

PT = {
    "mlm": (6_291_456, 384, 16, UVSettings(rank=64), None),
    "pos-ptb": (3_145_728, 128, 12, UVSettings(rank=128), None),
    "pos-ud": (2_359_296, 128, 18, FullSettings(), None),
    "upos-ud": (4_194_304, 256, 8, FullSettings(), None),
    "ner": (9_437_184, 256, 18, FullSettings(), None),
    "sst-2": (10_485_760, 512, 10, UVSettings(rank=64), 1024),
    "sst-5": (2_630_656, 256, 18, UVWSettings(rank=64), 512),
    "cogs": (147_456, 64, 4, UVSettings(rank=16, gamma=8), None),
}

# parameters, width, feed-forward, heads, layers, head width
TRANSFORMER = {
    "mlm-ptb": (23_809_408, 384, 2048, 8, 5, 256),
    "mlm-bllip": (11_678_720, 256, 2048, 14, 4, 128),
    "pos-ptb": (15_358_464, 512, 2048, 14, 5, 32),
    "pos-ud": (3_155_456, 384, 512, 14, 4, 16),
    "upos-ud": (14_368_256, 384, 2048, 10, 4, 128),
    "ner": (1_709_312, 256, 512, 16, 3, 16),
    "sst-2": (23_214_080, 256, 512, 10, 8, 256),
    "sst-5": (8_460_800, 128, 1024, 14, 4, 256),
}


@pytest.mark.parametrize("name", PT)
def test_probabilistic_transformers(name):
    count, labels, channels, potential, root = PT[name]
    settings = EncoderSettings(
        labels=labels,
        channels=channels,
        potential=potential,
        root=RootSettings(root) if root else None,
    )
    assert Encoder(10, settings).count_parameters() == count


@pytest.mark.parametrize("name", TRANSFORMER)
def test_transformers(name):
    count, width, feed_forward, heads, layers, head_width = TRANSFORMER[name]
    settings = TransformerSettings(
        width=width, feed_forward=feed_forward, heads=heads, layers=layers, head_width=head_width
    )
    assert Transformer(10, settings).count_parameters() == count


@pytest.mark.parametrize(("universal", "count"), [(False, 100_000), (True, 50_000)])
def test_transformers_for_cogs(universal, count):
    settings = TransformerSettings(
        width=64,
        feed_forward=256,
        heads=4,
        layers=2,
        head_width=16,
        positions="none",
        relative=8,
        universal=universal,
    )
    assert Transformer(10, settings).count_parameters() == count
