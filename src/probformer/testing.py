"""For tests, here and in projects that build on this one: golden cases and dense models."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from probformer.config import Inference
from probformer.potentials import UV, UVW, Full, Global, Potentials, Root, WordPotential


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
