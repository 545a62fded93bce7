"""What is measured is what it says it is."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import candidates
from probformer import Encoder, Inference
from probformer.config import EncoderSettings, UVSettings


def test_the_dense_einsums_compute_the_same_as_the_encoder():
    shape = candidates.Shape(batch=2, length=9, dropout=0.0, device=torch.device("cpu"))
    dense = candidates.DenseEinsums(shape)
    settings = EncoderSettings(
        labels=candidates.LABELS,
        channels=candidates.CHANNELS,
        potential=UVSettings(rank=candidates.RANK, gamma=candidates.GAMMA),
        inference=Inference(iterations=candidates.ITERATIONS),
    )
    encoder = Encoder(candidates.VOCABULARY, settings)
    encoder.word_scores.weight.data = dense.word_scores.weight.data
    encoder.potentials.words.U.data = dense.U.data.permute(0, 2, 3, 1)
    encoder.potentials.words.V.data = dense.V.data.permute(0, 2, 3, 1)
    words = torch.randint(candidates.VOCABULARY, (2, 9))
    mask = torch.ones(2, 9, dtype=torch.bool)
    with torch.no_grad():
        torch.testing.assert_close(
            dense(words, mask), encoder(words, mask).z_scores, rtol=1e-4, atol=1e-5
        )
