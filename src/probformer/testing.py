"""For tests, here and in projects that build on this one: golden cases, and `crf.reference`."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from probformer.config import Inference
from probformer.crf import reference, sentence_field
from probformer.crf.normalisers import softmax
from probformer.crf.potentials import (
    UV,
    UVW,
    Factor,
    Full,
    Global,
    Potentials,
    Root,
    Variable,
    WordPotential,
    as_potentials,
)


@dataclass(frozen=True)
class Case:
    """A golden case: the arguments of inference, and the results that it must have."""

    name: str
    unary: Tensor
    mask: Tensor
    potentials: Potentials
    inference: Inference
    expected: dict[str, Tensor]
    """`z_scores`, `q_h`, `root_scores` and `cotangent`, if the file has them."""
    gradients: dict[str, Tensor]
    """By the names of `parameters`, and of `unary`."""

    @property
    def parameters(self) -> dict[str, nn.Parameter]:
        return dict(self.potentials.named_parameters())


def load_case(path: str | Path, dtype: torch.dtype = torch.float64) -> Case:
    """Read a golden case; its unary scores and parameters require gradients.

    Args:
        path: the `.npz` file.
        dtype: of all floating-point tensors of the case.
    """
    with np.load(path, allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    config: dict[str, Any] = json.loads(str(arrays.pop("config")))
    mask = torch.from_numpy(arrays.pop("mask"))
    tensors = {key: torch.from_numpy(value).to(dtype) for key, value in arrays.items()}

    words = _word_potential(config)
    root = Root(config["d"], config["h"], config["d_root"]) if config["d_root"] else None
    globals_ = None
    if config["n_global"]:
        globals_ = Global(config["d"], config["h"], config["n_global"], config["global_mode"])
    potentials = Potentials(words, root, globals_).to(dtype)

    gradients = {"unary": tensors["grad_unary"]}
    for name, parameter in potentials.named_parameters():
        stored = _STORED_AS.get(name, name.split(".")[-1])
        # In files the dependent's label comes before the rank or the other label; here it is last.
        turn = name in _LABELS_LAST
        value, gradient = tensors[stored], tensors[f"grad_{stored}"]
        parameter.data.copy_(value.mT if turn else value)
        gradients[name] = gradient.mT if turn else gradient
    names = ("z_scores", "q_h", "root_scores", "cotangent")
    return Case(
        name=config["name"],
        unary=tensors["unary"].requires_grad_(),
        mask=mask,
        potentials=potentials,
        inference=Inference(
            iterations=config["iterations"],
            asynchronous=config["asynchronous"],
            lambda_z=config["lambda_Z"],
            lambda_h=config["lambda_H"],
            step_z=config["step_Z"],
            step_h=config["step_H"],
            damping_z=config["damping_Z"],
            damping_h=config["damping_H"],
        ),
        expected={name: tensors[name] for name in names if name in tensors},
        gradients=gradients,
    )


_STORED_AS = {"root.T": "T_root"}
_LABELS_LAST = {"words.T", "words.U", "words.V"}


def _word_potential(config: dict[str, Any]) -> WordPotential:
    kind, _, rank = config["decomposition"].partition(":")
    sizes = (config["d"], config["h"])
    if kind == "no":
        return Full(*sizes, gamma=config["gamma"])
    return {"uv": UV, "uvw": UVW}[kind](*sizes, rank=int(rank), gamma=config["gamma"])


def reference_sentence(unary: Tensor, potentials: Potentials) -> sentence_field.SentenceField:
    """One sentence of a model for `crf.reference`, with dense potentials.

    Args:
        unary: the scores of its words, (n, d).
        potentials: the factors; those that are not in the paper need `reference_score`.

    Returns:
        The conditional random field of the sentence.
    """
    root, globals_ = potentials.root, potentials.globals
    of_the_paper = (potentials.words, root, globals_)
    others = [factor for factor in potentials.factors if factor not in of_the_paper]
    return sentence_field.SentenceField(
        S=unary,
        T=potentials.words.dense,
        T_root=root.dense() if root else None,
        B=globals_.dense() if globals_ else None,
        all_dep=globals_ is not None and globals_.mode == "all-dep",
        others=[_as_oracle_sees(factor, len(unary)) for factor in others],
        arc_labels=_labelled_channel(potentials),
    )


def _labelled_channel(potentials: Potentials) -> tuple[int, int] | None:
    factor = potentials.labelling
    if factor is None or factor.labelled_channel is None:
        return None
    return factor.labelled_channel, factor.label_count


def _as_oracle_sees(factor: Factor, n: int) -> sentence_field.OtherFactor:
    labels = {key: v.values for v in factor.label_variables for key in _each(v, n)}
    heads = {key: v.values for v in factor.head_variables for key in _each(v, n)}
    forbidden = None
    if factor.columns(n):
        (forbidden,) = factor.forbidden_columns(torch.ones(1, n, dtype=torch.bool))
    return sentence_field.OtherFactor(
        labels, heads, lambda q: factor.reference_score(q, n), forbidden
    )


def _each(variable: Variable, n: int) -> list[sentence_field.Variable]:
    """The names in `reference` of all variables of a kind in a sentence of n words."""
    shape = variable.shape(1, n)[1:]
    return [(variable.symbol, *place) for place in itertools.product(*map(range, shape))]


def assert_messages_are_gradients(
    potentials: Potentials | WordPotential, n: int = 5, tolerance: float = 1e-10
) -> None:
    """Check that the messages to heads and to labels equal −∂E/∂Q for random Q.

    E is the energy of `crf.reference`, with dense potentials and each factor's `reference_score`.
    This is the test for a potential or factor of your own.

    Args:
        potentials: all factors of a model, or a potential between words alone, in float64.
        n: the number of words of the random sentence.
        tolerance: the relative and the absolute tolerance.

    Raises:
        AssertionError: a message differs; the text says to which variables.
    """
    potentials = as_potentials(potentials)
    dtype = next(potentials.parameters()).dtype
    unary = torch.randn(n, potentials.words.labels, dtype=dtype)
    crf = reference_sentence(unary, potentials)
    q: sentence_field.Q = {}
    for variable in crf.labels + crf.heads:
        scores = torch.randn(crf.size(variable), dtype=dtype)
        q[variable] = softmax(scores, crf.forbidden(variable)).requires_grad_()
    total = reference.energy(crf, q)
    partial = torch.autograd.grad(total, [*q.values()], materialize_grads=True)
    gradients = dict(zip(q, partial, strict=True))

    def stack(values: sentence_field.Q, variable: Variable) -> Tensor:
        rows = torch.stack([values[key] for key in _each(variable, n)])
        return rows.view(*variable.shape(1, n), -1)

    def blocks(values: sentence_field.Q) -> list[Tensor]:
        """Tensors of heads in the order of `Potentials.head_messages`."""
        found = [stack(values, variable) for variable in potentials.head_variables]
        channels = [*crf.channels]
        if crf.arc_labels is not None:
            channel, count = crf.arc_labels
            channels.remove(channel)
            pairs = torch.stack([values["H", channel, i] for i in range(n)])  # (n, columns · m)
            found.insert(0, pairs.unflatten(-1, (-1, count)).movedim(-1, 0).unsqueeze(0))
        rows = [values["H", c, i] for c in channels for i in range(n)]
        heads = potentials.heads(n).values
        whole = torch.stack(rows) if rows else unary.new_zeros(0, heads)
        return [whole.view(1, len(channels), n, heads), *found]

    cannot_be = {variable: crf.forbidden(variable) for variable in crf.heads}
    labels = potentials.label_variables
    x = potentials.prepare([stack(q, variable) for variable in labels])
    to_heads = potentials.head_messages(x)
    to_labels = potentials.label_messages(blocks(q), x)
    to_labels[0] = to_labels[0] + unary
    of_arcs = [] if crf.arc_labels is None else ["H and labels of arcs"]
    names = ["H", *of_arcs, *(variable.symbol for variable in potentials.head_variables)]
    for name, message, slope, closed in zip(
        names, to_heads, blocks(gradients), blocks(cannot_be), strict=True
    ):
        # A message to a value that cannot be taken, such as the word itself, is not defined.
        message, expected = (x.masked_fill(closed.bool(), 0.0) for x in (message, -slope))
        _assert_close(message, expected, tolerance, f"to {name}")
    for variable, message in zip(labels, to_labels, strict=True):
        expected = -stack(gradients, variable)
        _assert_close(message, expected, tolerance, f"to {variable.symbol}")


def _assert_close(actual: Tensor, expected: Tensor, tolerance: float, what: str) -> None:
    torch.testing.assert_close(
        actual, expected, rtol=tolerance, atol=tolerance, msg=lambda text: f"{what}: {text}"
    )
