"""Words in, posterior out: the probabilistic transformer as a module."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from probformer.config import EncoderSettings
from probformer.crf.evidence import Evidence
from probformer.crf.fused import kernels_support
from probformer.crf.inference import mean_field
from probformer.crf.input_checks import check_words
from probformer.crf.posterior import Posterior
from probformer.crf.potentials import Potentials, WordPotential, as_potentials, build_potentials
from probformer.errors import InputError, require_kind, require_whole
from probformer.packing import Packing


class Encoder(nn.Module):
    """The probabilistic transformer: word scores S, potentials and mean-field inference.

    >>> encoder = Encoder(vocabulary=10_000, settings=EncoderSettings(labels=128, channels=8))
    >>> posterior = encoder(words, mask)            # words (B, n) long, mask (B, n) bool

    Args:
        vocabulary: the number of words, special ones included.
        settings: sizes, potentials and inference; by default `EncoderSettings()`.
        potentials: potentials of your own, in place of those that the settings describe.

    Raises:
        InputError: an argument has the wrong type, or `potentials` other sizes than the settings.
    """

    def __init__(
        self,
        vocabulary: int,
        settings: EncoderSettings | None = None,
        potentials: Potentials | WordPotential | None = None,
    ) -> None:
        super().__init__()
        require_whole("vocabulary", vocabulary)
        self.settings = settings = EncoderSettings() if settings is None else settings
        require_kind("settings", settings, EncoderSettings)
        self.word_scores = nn.Embedding(vocabulary, settings.labels)  # S
        if settings.initial_scores is None:
            nn.init.xavier_uniform_(self.word_scores.weight)
        else:
            nn.init.normal_(self.word_scores.weight, std=settings.initial_scores)
        if potentials is None:
            self.potentials = build_potentials(settings)
        else:
            self.potentials = as_potentials(potentials)
            self._check_sizes()

    def _check_sizes(self) -> None:
        words, root, settings = self.potentials.words, self.potentials.root, self.settings
        given = (words.labels, words.channels, root.labels if root else None)
        d_root = settings.root.labels if settings.root else None
        wanted = (settings.labels, settings.channels, d_root)
        if given != wanted:
            sizes = f"(labels, channels, root labels) {wanted}"
            raise InputError(f"potentials must have the settings' {sizes}, got {given}")

    supports_evidence = True
    infers_heads = True
    """Whether heads are variables of the model, which a parser can learn."""

    @property
    def labelled_channel(self) -> int | None:
        """The channel whose arcs have labels; None if there is none."""
        factor = self.potentials.labelling
        return None if factor is None else factor.labelled_channel

    @property
    def embedding(self) -> nn.Embedding:
        """The scores S of each word, as an embedding of d dimensions."""
        return self.word_scores

    def embed(self, words: Tensor) -> Tensor:
        """The scores S of words, without context.

        Args:
            words: (B, n) long.

        Returns:
            (B, n, d).
        """
        return self.word_scores(words)

    def label_distributions(self) -> Tensor:
        """P(label | word) without context, (vocabulary, d), in double precision."""
        scores = self.word_scores.weight.detach().double().cpu()
        return (scores / self.settings.inference.lambda_z).softmax(-1)

    def can_pack(self, reads_single_words: bool, precision: str) -> bool:
        """Whether kernels support these settings for packed sentences; else they are padded.

        Args:
            reads_single_words: whether the read-out maps each word by itself.
            precision: that of matrix products: "fp32", "tf32" or "bf16".
        """
        kernels = kernels_support(self.settings.inference) and self.potentials.labelling is None
        return reads_single_words and self.potentials.is_by_word and kernels

    @property
    def width(self) -> int:
        """The last axis of `representation`: d, or d_root for the read-out "root"."""
        root = self.potentials.root if self.settings.readout == "root" else None
        return root.labels if root else self.settings.labels

    def forward(
        self,
        words: Tensor,
        mask: Tensor,
        *,
        trace: bool = False,
        attention: bool = True,
        evidence: Evidence | None = None,
        generator: torch.Generator | None = None,
        packing: Packing | None = None,
    ) -> Posterior:
        """The posterior over labels and heads, given words.

        Args:
            words: (B, n) long.
            mask: (B, n) bool, false on padding.
            trace: whether to keep the posterior after each iteration, with its free energy.
            attention: whether to return the marginals of heads; it is faster without.
            evidence: observed variables.
            generator: the random numbers of dropout; by default PyTorch's own.
            packing: where the sentences are, if words and mask are one row of them laid end to end.

        Returns:
            The posterior of the last iteration, z_scores (B, n, d). See `mean_field`.

        Raises:
            InputError: an argument has the wrong type, shape or values; the message names it.
        """
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
            attention=attention,
            packing=packing,
        )

    def representation(self, posterior: Posterior) -> Tensor:
        """The input of a task's layer.

        Args:
            posterior: a result of this encoder.

        Returns:
            (B, n, d), or (B, d_root) for the read-out "root".
        """
        found = {
            "scores": posterior.z_scores,
            "marginals": posterior.z_marginals,
            "root": posterior.root_scores,
        }[self.settings.readout]
        assert found is not None
        return found

    def penalty(self) -> Tensor:
        """‖T‖_F of the words' potential, not squared: the paper's L2 term."""
        return self.potentials.words.norm()

    def count_parameters(self) -> int:
        """The number of parameters as the paper counts them: without word scores."""
        return sum(parameter.numel() for parameter in self.potentials.parameters())
