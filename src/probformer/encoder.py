"""Words in, posterior out: the probabilistic transformer as a module."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from probformer.config import EncoderSettings
from probformer.errors import InputError, require, require_positive_int
from probformer.evidence import Evidence
from probformer.inference import Posterior, mean_field
from probformer.normalisers import get_normaliser
from probformer.potentials import Potentials, build_potentials


class Encoder(nn.Module):
    """Word scores S, potentials and mean-field inference.

    >>> encoder = Encoder(vocabulary=10_000, settings=EncoderSettings(labels=128, channels=8))
    >>> posterior = encoder(words, mask)            # words (B, n) long, mask (B, n) bool
    """

    def __init__(
        self,
        vocabulary: int,
        settings: EncoderSettings | None = None,
        potentials: Potentials | None = None,
    ) -> None:
        """`potentials` of your own take the place of those that the settings describe."""
        super().__init__()
        require_positive_int("vocabulary", vocabulary)
        self.settings = settings = settings or EncoderSettings()
        get_normaliser("normaliser_z", settings.inference.normaliser_z)
        get_normaliser("normaliser_h", settings.inference.normaliser_h)
        self.word_scores = nn.Embedding(vocabulary, settings.labels)  # S
        nn.init.xavier_uniform_(self.word_scores.weight)
        self.potentials = potentials or build_potentials(
            settings.labels, settings.channels, settings.potential, settings.root, settings.globals
        )
        given, wanted = self.potentials.words.labels, settings.labels
        require(given == wanted, f"potentials must have the settings' {wanted} labels, got {given}")

    @property
    def width(self) -> int:
        """The size of `representation`'s vectors."""
        root = self.settings.root if self.settings.readout == "root" else None
        return root.labels if root else self.settings.labels

    def forward(
        self,
        words: Tensor,
        mask: Tensor,
        generator: torch.Generator | None = None,
        evidence: Evidence | None = None,
        trace: bool = False,
    ) -> Posterior:
        check_words(words, mask, self.word_scores.num_embeddings)
        return mean_field(
            self.word_scores(words),
            mask,
            self.potentials,
            self.settings.inference,
            dropout=self.settings.dropout if self.training else 0.0,
            generator=generator,
            evidence=evidence,
            trace=trace,
        )

    def representation(self, posterior: Posterior) -> Tensor:
        """What a task reads: (B, n, d), or (B, d_root) for the read-out "root"."""
        read = {
            "scores": posterior.z_scores,
            "marginals": posterior.z_marginals,
            "root": posterior.root_scores,
        }[self.settings.readout]
        assert read is not None
        return read

    def penalty(self) -> Tensor:
        """‖T‖_F of the words' potential, not squared: the paper's L2 term."""
        return self.potentials.words.norm()

    def count_parameters(self) -> int:
        """As the paper counts: without word scores."""
        return sum(parameter.numel() for parameter in self.potentials.parameters())


def check_words(words: Tensor, mask: Tensor, vocabulary: int) -> None:
    """Indices (B, n) that exist; where there is padding, any index that exists will do."""
    if torch.compiler.is_compiling():
        return  # messages and values do not belong in a graph
    shape = tuple(words.shape)
    require(words.dim() == 2, f"words must have shape (batch, words), got {shape}")
    require(words.dtype == torch.long, f"words must be of type long, got {words.dtype}")
    given = tuple(mask.shape)
    require(given == shape, f"mask must have the words' shape {shape}, got {given}")
    require(mask.dtype == torch.bool, f"mask must be of type bool, got {mask.dtype}")
    if words.is_cuda:
        return  # reading values would make the device wait; there, CUDA itself refuses them
    bad = (words < 0) | (words >= vocabulary)
    if bool(bad.any()):
        sentence, word = bad.nonzero()[0].tolist()
        value = int(words[sentence, word])
        where = f"sentence {sentence}, word {word}"
        raise InputError(f"words must be in 0 … {vocabulary - 1}, got {value} at {where}")
