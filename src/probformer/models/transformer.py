"""The transformers that probabilistic transformers are compared with.

They are meant as strong baselines, not as a copy of one implementation: initialisation is standard,
and dropout has the configured rate everywhere. They return a `Posterior` in which `z_scores` is the
representation and `head_marginals` the attention of the last layer.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from probformer.config import TransformerSettings
from probformer.crf.input_checks import check_packing, check_words, may_read_values
from probformer.crf.posterior import Posterior
from probformer.errors import InputError, require_kind, require_whole
from probformer.models.fused_layers import apply_layers, can_fuse_layers
from probformer.models.transformer_layers import Layer
from probformer.packing import Packing


class Transformer(nn.Module):
    """The paper's Transformer and its variants, as `TransformerSettings` describe them.

    Args:
        vocabulary: The number of words, special ones included.
        settings: Sizes and variant; by default `TransformerSettings()`.
    """

    def __init__(self, vocabulary: int, settings: TransformerSettings | None = None) -> None:
        super().__init__()
        require_whole("vocabulary", vocabulary)
        self.settings = settings = TransformerSettings() if settings is None else settings
        require_kind("settings", settings, TransformerSettings)
        self.words = nn.Embedding(vocabulary, settings.width)
        if settings.words == "xavier":
            nn.init.xavier_uniform_(self.words.weight)
        else:
            nn.init.normal_(self.words.weight, std=1 / self._scale)
        if settings.readout == "cls":
            self.cls = nn.Parameter(torch.empty(settings.width))
            nn.init.normal_(self.cls, std=1 / self._scale)
        if settings.positions == "learned":
            self.positions = nn.Parameter(torch.empty(settings.max_length, settings.width))
            nn.init.normal_(self.positions)  # beside words of unit variance
        layers = 1 if settings.universal else settings.layers
        self.layers = nn.ModuleList(Layer(settings) for _ in range(layers))
        pre = settings.norm == "pre"
        self.final_norm = nn.LayerNorm(settings.width) if pre else nn.Identity()

    supports_evidence = False
    infers_heads = False
    labelled_channel = None

    @property
    def embedding(self) -> nn.Embedding:
        """The embedding of words, (vocabulary, d)."""
        return self.words

    def can_pack(self, reads_single_words: bool, precision: str) -> bool:
        """Whether there are kernels for packed sentences; otherwise they are padded.

        Args:
            reads_single_words: Whether the read-out maps each word by itself.
            precision: That of matrix products: "fp32", "tf32" or "bf16".
        """
        readable = self.settings.has_root or reads_single_words
        return readable and self.settings.relative is None and precision == "bf16"

    def label_distributions(self) -> Tensor:
        """Raises an `InputError`: a transformer has no labels."""
        raise InputError("a transformer has no labels; probabilistic transformers do")

    def penalty(self) -> Tensor:
        """Zero: the paper's L2 term is on T, which transformers do not have."""
        return self.words.weight.new_zeros(())

    @property
    def width(self) -> int:
        """d, the last axis of `representation`."""
        return self.settings.width

    def forward(
        self,
        words: Tensor,
        mask: Tensor,
        *,
        trace: bool = False,
        attention: bool = True,
        packing: Packing | None = None,
    ) -> Posterior:
        """Run all layers.

        Args:
            words: (B, n) long.
            mask: (B, n) bool, false on padding.
            trace: Whether the posterior has the states after each layer.
            attention: Whether the posterior has attention weights; long sentences are faster
                without.
            packing: Where sentences are, if words and mask are one row of them laid end to end.
                With the read-out "cls" the first position of each sentence is left free for CLS.

        Returns:
            The representation as `z_scores` (B, n, d), and the attention of the last layer as
            `head_marginals` (B, h, n, n). With the read-out "cls", `root_scores` (B, d) is the
            vector of CLS, and `root_head_marginals` (B, h, n) the attention to it.

        Raises:
            InputError: an argument has the wrong type, shape or values, or a sentence is longer
                than the position table.
        """
        check_words(words, mask, self.words.num_embeddings)
        if packing is None:
            self._check_length(words.shape[1])
        else:
            self._check_packing(packing, mask)
        x = F.dropout(self._input(words, packing), self.settings.rate_of_input, self.training)
        if self.settings.readout == "cls" and packing is None:
            mask = F.pad(mask, (1, 0), value=True)
        weights: Tensor | None = None
        steps: list[Posterior] = []
        if packing is not None and not (trace or attention) and self._can_fuse(x, packing):
            x = self._fused(x, packing)
        else:
            for number in range(self.settings.layers):
                layer = self.layers[0 if self.settings.universal else number]
                x, weights = layer(x, mask, attention, packing)
                if trace:
                    steps.append(self._posterior(x, mask, weights, packing))
        last = self._posterior(self.final_norm(x), mask, weights, packing)
        return replace(last, trace=steps if trace else None)

    def _can_fuse(self, x: Tensor, packing: Packing) -> bool:
        known = self.settings.norm == "post" and self.settings.relative is None
        return known and can_fuse_layers(x, packing, self.settings.head_width)

    def _fused(self, x: Tensor, packing: Packing) -> Tensor:
        settings = self.settings
        times = settings.layers if settings.universal else 1
        rate = settings.dropout if self.training else 0.0
        parts = [layer.parts() for layer in self.layers if isinstance(layer, Layer)]
        return apply_layers(parts, times, x, packing, settings.heads, rate)

    def embed(self, words: Tensor) -> Tensor:
        """The input vectors of words, positions included, without context.

        Args:
            words: (B, n) long.

        Returns:
            (B, n, d).
        """
        return self._input(words)[:, self.settings.extra_places :]

    def _input(self, words: Tensor, packing: Packing | None = None) -> Tensor:
        """The input of the first layer before dropout: CLS, if there is one, then the words."""
        x = self.words(words)
        place = None if packing is None else packing.positions(x.shape[1])
        if self.settings.readout == "cls" and place is None:
            x = torch.cat([self.cls.expand(len(words), 1, -1), x], dim=1)
        elif self.settings.readout == "cls":
            x = torch.where((place == 0).unsqueeze(-1), self.cls, x)
        return x * self._scale + self._positions(x.shape[1], place)

    @property
    def _scale(self) -> float:
        return self.settings.width**0.5 if self.settings.words == "scaled" else 1.0

    def _posterior(
        self, x: Tensor, mask: Tensor, weights: Tensor | None, packing: Packing | None
    ) -> Posterior:
        """With CLS, its vector and the attention to it are in the fields of ROOT."""
        words = x * mask.unsqueeze(-1)
        if self.settings.readout == "scores":
            return Posterior(z_scores=words, head_marginals=weights)
        heads = None if weights is None else weights[:, :, 1:, 1:]
        root_heads = None if weights is None else weights[:, :, 1:, 0]
        if packing is None:
            words, root = words[:, 1:], words[:, 0]
        else:
            # A missing sentence may start after the end of the row.
            first = packing.starts.clamp(max=x.shape[1] - 1)
            root = x[0].index_select(0, first)
        return Posterior(
            z_scores=words, head_marginals=heads, root_scores=root, root_head_marginals=root_heads
        )

    def representation(self, posterior: Posterior) -> Tensor:
        """The input of a task's layer.

        Args:
            posterior: A result of this encoder.

        Returns:
            (B, n, d), or (B, d) for the read-out "cls".
        """
        if self.settings.readout == "scores":
            return posterior.z_scores
        assert posterior.root_scores is not None
        return posterior.root_scores

    def count_parameters(self) -> int:
        """The number of parameters, without embeddings of words and CLS, as the paper counts."""
        embeddings = ("words.weight", "cls")
        return sum(p.numel() for name, p in self.named_parameters() if name not in embeddings)

    def _check_packing(self, packing: Packing, mask: Tensor) -> None:
        has_cls = self.settings.readout == "cls"
        check_packing(packing, mask, first_is_free=has_cls)
        if may_read_values(mask):
            self._check_length(max(packing.lengths.tolist(), default=0) - has_cls)

    def _check_length(self, n: int) -> None:
        longest = self.settings.max_words
        if longest is not None and n > longest:
            table = f"the position table, which has places for {longest}"
            raise InputError(f"words must fit into {table}, got a sentence of {n} words")

    def _positions(self, n: int, place: Tensor | None) -> Tensor | float:
        """The vectors of the first n positions, or of the positions `place` (B, n)."""
        if self.settings.positions == "none":
            return 0.0
        learned = self.settings.positions == "learned"
        table = self.positions if learned else sinusoids(n, self.settings.width, self.words.weight)
        if place is None:
            return table[:n]
        return F.embedding(place.clamp(max=len(table) - 1), table)


def sinusoids(n: int, width: int, like: Tensor) -> Tensor:
    """The fixed position vectors of the original Transformer, (n, width)."""
    dtype = torch.promote_types(like.dtype, torch.float32)
    position = torch.arange(n, device=like.device, dtype=dtype)[:, None]
    even = torch.arange(0, width, 2, device=like.device, dtype=dtype)
    angles = position * 10000 ** (-even / width)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width].to(like.dtype)
