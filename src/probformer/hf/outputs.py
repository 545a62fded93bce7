"""Outputs of an encoder on a padded batch, as models of transformers return them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from probformer.crf.posterior import Posterior
from probformer.models.encoder import Encoder
from probformer.models.transformer import Transformer


@dataclass(frozen=True, eq=False)
class EncoderOutputs:
    representation: Tensor
    """Input of the read-out: (B, n, d), or (B, d_root) of the whole sentence."""
    last_hidden_state: Tensor
    """(B, n, d): the scores of each word's labels."""
    pooler_output: Tensor | None
    """(B, d_root): the scores of ROOT's labels, or CLS."""
    hidden_states: tuple[Tensor, ...] | None
    """(B, n, d): the word scores S, and the scores after each iteration."""
    attentions: tuple[Tensor, ...] | None
    """(B, h, n, n) of each iteration: row i is the distribution over the word that heads word i."""

    def traces(self) -> dict[str, Any]:
        return {"hidden_states": self.hidden_states, "attentions": self.attentions}


def encode(
    encoder: Encoder | Transformer,
    words: Tensor,
    mask: Tensor,
    *,
    attentions: bool,
    hidden_states: bool,
    save_memory: bool,
) -> EncoderOutputs:
    """Run the encoder on sentences padded on either side.

    With `save_memory`, its activations are recomputed in the backward pass instead of kept.
    """
    shift = _Shift(mask)
    words, mask = shift.to_the_left(words), shift.to_the_left(mask)

    def infer(words: Tensor, mask: Tensor) -> Posterior:
        return encoder(words, mask, trace=attentions or hidden_states, attention=attentions)

    if save_memory:
        posterior: Posterior = checkpoint(infer, words, mask, use_reentrant=False)  # type: ignore[assignment]
    else:
        posterior = infer(words, mask)
    steps = posterior.trace or []
    representation = encoder.representation(posterior).to(posterior.z_scores.dtype)
    last = shift.back(posterior.z_scores)
    states, heads = None, None
    if hidden_states:
        between = [shift.back(step.z_scores) for step in steps[:-1]]
        states = (shift.back(_embedded(encoder, words, mask)), *between, last)
    if attentions:
        found = [step.head_marginals for step in steps]
        heads = tuple(shift.back_of_pairs(pairs) for pairs in found if pairs is not None)
    return EncoderOutputs(
        representation=shift.back(representation) if representation.dim() == 3 else representation,
        last_hidden_state=last,
        pooler_output=posterior.root_scores,
        hidden_states=states,
        attentions=heads,
    )


def _embedded(encoder: Encoder | Transformer, words: Tensor, mask: Tensor) -> Tensor:
    """Word scores or embeddings, zero on padding."""
    return encoder.embed(words) * mask.unsqueeze(-1)


class _Shift:
    """Moves padding from left to right, so that the words of a sentence begin at position 0."""

    def __init__(self, mask: Tensor) -> None:
        n = mask.shape[1]
        before = (mask.cumsum(1) == 0).sum(1, keepdim=True)
        self.needed = bool((before % max(n, 1)).any())
        places = torch.arange(n, device=mask.device)
        self.source, self.target = (places + before) % max(n, 1), (places - before) % max(n, 1)

    def to_the_left(self, tokens: Tensor) -> Tensor:
        return tokens.gather(1, self.source) if self.needed else tokens

    def back(self, vectors: Tensor) -> Tensor:
        """(B, n, d) in the original positions."""
        if not self.needed:
            return vectors
        return vectors.gather(1, self.target[:, :, None].expand_as(vectors))

    def back_of_pairs(self, pairs: Tensor) -> Tensor:
        """(B, h, n, n) in the original positions."""
        if not self.needed:
            return pairs
        rows = pairs.gather(2, self.target[:, None, :, None].expand_as(pairs))
        return rows.gather(3, self.target[:, None, None, :].expand_as(pairs))
