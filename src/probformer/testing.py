"""For tests, here and in projects that build on this one: golden cases and the oracle's view."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from probformer.config import Inference
from probformer.crf import reference
from probformer.crf.normalisers import softmax
from probformer.crf.potentials import (
    UV,
    UVW,
    Full,
    Global,
    Potentials,
    Root,
    WordPotential,
    as_potentials,
)


@dataclass(frozen=True)
class Case:
    """A golden case: what inference is given, and what it must return."""

    name: str
    unary: Tensor
    mask: Tensor
    potentials: Potentials
    inference: Inference
    expected: dict[str, Tensor]
    """`z_scores`, `q_h`, `root_scores`, `cotangent`, as far as the case has them."""
    gradients: dict[str, Tensor]
    """By the names of `parameters`, and `unary`."""

    @property
    def parameters(self) -> dict[str, nn.Parameter]:
        return dict(self.potentials.named_parameters())


def load_case(path: str | Path, dtype: torch.dtype = torch.float64) -> Case:
    """A golden case from its `.npz` file, with gradients required where it has gradients."""
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
        # Files have the label of the dependent before the rank or the other label; we have it last.
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


def reference_sentence(unary: Tensor, potentials: Potentials) -> reference.Sentence:
    """One sentence (n, d) of a model as the oracle sees it, with dense potentials."""
    root, globals_ = potentials.root, potentials.globals
    return reference.Sentence(
        S=unary,
        T=potentials.words.dense,
        T_root=root.dense() if root else None,
        B=globals_.dense() if globals_ else None,
        all_dep=globals_ is not None and globals_.mode == "all-dep",
    )


def assert_messages_are_gradients(
    potentials: Potentials | WordPotential, n: int = 5, tolerance: float = 1e-10
) -> None:
    """Both messages equal −∂E/∂Q, E being the paper's energy with the dense potentials.

    The test for a potential of your own; give it in double precision.
    """
    potentials = as_potentials(potentials)
    words, globals_ = potentials.words, potentials.globals
    dtype = next(potentials.parameters()).dtype
    unary = torch.randn(n, words.labels, dtype=dtype)
    crf = reference_sentence(unary, potentials)
    q: reference.Q = {}
    for variable in crf.labels + crf.heads:
        scores = torch.randn(crf.size(variable), dtype=dtype)
        q[variable] = softmax(scores, crf.forbidden(variable)).requires_grad_()
    total = reference.energy(crf, q)
    partial = torch.autograd.grad(total, [*q.values()], materialize_grads=True)
    gradients = dict(zip(q, partial, strict=True))

    def stack(values: reference.Q, kind: str, channels: int) -> Tensor:
        if kind == "ROOT":
            return values[("ROOT",)].unsqueeze(0)
        if kind == "Z":
            return torch.stack([values["Z", i] for i in range(n)]).unsqueeze(0)
        rows = [torch.stack([values[kind, c, i] for i in range(n)]) for c in range(channels)]
        return torch.stack(rows).unsqueeze(0)

    label_kinds = ["Z"] + (["ROOT"] if potentials.root else [])
    head_kinds = [("H", words.channels)]
    if globals_ is not None and potentials.has_split_globals:
        head_kinds.append(("G", globals_.channels))
    x = potentials.project([stack(q, kind, 0) for kind in label_kinds])
    to_heads = potentials.head_messages(x)
    to_labels = potentials.label_messages([stack(q, *kind) for kind in head_kinds], x)
    to_labels[0] = to_labels[0] + unary
    for (kind, channels), message in zip(head_kinds, to_heads, strict=True):
        expected = -stack(gradients, kind, channels)
        # The diagonal is no variable's value: nobody asks what it says.
        itself = torch.eye(n, message.shape[-1], dtype=torch.bool) & (kind == "H")
        _assert_close(message.masked_fill(itself, 0.0), expected, tolerance, f"to {kind}")
    for kind, message in zip(label_kinds, to_labels, strict=True):
        _assert_close(message, -stack(gradients, kind, 0), tolerance, f"to {kind}")


def _assert_close(actual: Tensor, expected: Tensor, tolerance: float, what: str) -> None:
    torch.testing.assert_close(
        actual, expected, rtol=tolerance, atol=tolerance, msg=lambda text: f"{what}: {text}"
    )
