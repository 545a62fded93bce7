"""The distribution over parses of sentences, and the parses that are decoded or drawn from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from probformer.crf.arc_distribution import ArcDistribution
from probformer.crf.decoding import decode
from probformer.crf.structures import ProjectiveTrees, SpanningTrees, Trees
from probformer.data.parsed import Parse
from probformer.sentinels import ROOT
from probformer.tasks.labels import Labels

PARSE_DECODERS = ("tree", "mbr", "projective", "argmax")
"""The best tree on scores; the best tree on marginals; the best tree without crossing arcs on
scores; each word's most probable head, which may not form a tree."""


@dataclass(frozen=True, eq=False)
class ParseDistribution:
    """P(heads, labels, tags) of B sentences padded to n words; tags are independent of the rest."""

    arcs: ArcDistribution
    """Of heads and labels."""
    lengths: Sequence[int]
    """The number of words of each sentence; its words come first."""
    labels: Labels
    """The names of the labels of arcs; none where arcs have no labels."""
    tags: Mapping[str, tuple[Labels, Tensor]]
    """By column, the names of tags and their probabilities (B, n, tags)."""
    single_root: bool
    """Whether exactly one word of a tree has ROOT as its head, or one or more."""

    def given(self, heads: Tensor, labels: Tensor | None = None) -> ParseDistribution:
        """The distribution given what is known; see `ArcDistribution.given`."""
        return replace(self, arcs=self.arcs.given(heads, labels))

    def best(self, decoder: str = "tree") -> list[Parse]:
        """A parse of each sentence, by one of `PARSE_DECODERS`."""
        heads = self._decoded(decoder)
        return self._parses(heads, *_most_probable(self.arcs.labels_of(heads)))

    def sample(self, count: int, generator: torch.Generator) -> list[list[Parse]]:
        """Trees with labels, drawn from the distribution; tags are the most probable ones.

        Where heads are independent of each other, trees are drawn given that the heads form one.

        Args:
            count: How many to draw for each sentence.
            generator: Where random numbers come from, on the CPU.

        Returns:
            For each sentence its `count` parses.
        """
        arcs = self.arcs
        if not isinstance(arcs.structure, Trees):
            arcs = replace(arcs, structure=SpanningTrees(self.single_root))
        drawn = []
        for heads in arcs.sample(count, generator).unbind(1):
            p = self.arcs.labels_of(heads)
            rows = p.flatten(0, 1).double().cpu()
            labels = torch.multinomial(rows, 1, generator=generator).to(p.device)
            labels = labels.view(heads.shape)
            certain = p.gather(2, labels.unsqueeze(2)).squeeze(2)
            drawn.append(self._parses(heads, certain, labels))
        return [list(parses) for parses in zip(*drawn, strict=True)]

    def _decoded(self, decoder: str) -> Tensor:
        """Heads (B, n), `ROOT` at padding."""
        of_arcs = self.arcs.arc_scores()
        if decoder in ("mbr", "argmax"):
            of_arcs = self.arcs.marginals().masked_fill(of_arcs.isneginf(), -torch.inf)
        projective = decoder == "projective" or isinstance(self.arcs.structure, ProjectiveTrees)
        kind = "argmax" if decoder == "argmax" else "projective" if projective else "tree"
        heads = torch.full(of_arcs.shape[:2], ROOT)
        scores: NDArray[Any] = of_arcs.detach().double().cpu().numpy()
        for row, (length, own) in enumerate(zip(self.lengths, scores, strict=True)):
            if length:
                own = own[:length]
                found = decode(own[:, :length], own[:, -1], kind, self.single_root)
                heads[row, :length] = torch.from_numpy(found)
        return heads.to(of_arcs.device)

    def _parses(self, heads: Tensor, label_certain: Tensor, labels: Tensor) -> list[Parse]:
        """With these heads and labels, (B, n) each, and P(label | head)."""
        marginals = self.arcs.marginals()
        index = torch.where(heads == ROOT, marginals.shape[2] - 1, heads).unsqueeze(2)
        certain = marginals.gather(2, index).squeeze(2).clamp(0, 1).tolist()
        columns = {name: (names, *_most_probable(p)) for name, (names, p) in self.tags.items()}
        if len(self.labels):
            columns[_LABELS] = (self.labels, label_certain, labels)
        named = {
            column: (p.tolist(), [[names.name(x) for x in row] for row in at.tolist()])
            for column, (names, p, at) in columns.items()
        }
        found = []
        for row, (own, length) in enumerate(zip(heads.tolist(), self.lengths, strict=True)):
            names = {column: at[row][:length] for column, (_, at) in named.items()}
            p = {column: p[row][:length] for column, (p, _) in named.items()}
            labelled = (names.pop(_LABELS, None), p.pop(_LABELS, None))
            found.append(Parse(own[:length], certain[row][:length], *labelled, names, p))
        return found


_LABELS = ""  # no column of tags has this name


def _most_probable(p: Tensor) -> tuple[Tensor, Tensor]:
    """The largest probability of each word, and what has it, (B, n) each."""
    largest = p.max(-1)
    return largest.values, largest.indices
