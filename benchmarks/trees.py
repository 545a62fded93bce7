"""Trees beside the inverse of a Laplacian, and what they cost a parser's training step.

    python benchmarks/trees.py --threads 1

First the marginals of arcs and their gradient. The inverse is the usual way to get them, by the
matrix-tree theorem: it is computed in double precision, too, and differentiated by autograd. Then
training steps of the encoder of `parsing-conllu-pt`, forward and backward, that differ in the heads
of its first channel alone. All candidates of a table take turns. On a GPU they are also replayed
from CUDA graphs, as `probformer train` does.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from candidates import VOCABULARY, Mode, Shape, Step, captured
from probformer.config import EncoderSettings
from probformer.config.lookup import read_settings
from probformer.crf.arc_distribution import ArcDistribution
from probformer.crf.structures import ProjectiveTrees, SpanningTrees, structure_named
from probformer.models.encoder import Encoder
from probformer.sentinels import ROOT
from probformer.training.memory import keep_freed_memory
from step import machine, take_turns

CONFIG = "parsing-conllu-pt"
LABELS = 50
"""Of arcs; English treebanks of Universal Dependencies have about as many."""
INVERSE = "inverse of the Laplacian"
MARGINALS = {
    f"{INVERSE}, one root": lambda *given: inverse_marginals(*given, single_root=True),
    "spanning trees, one root": SpanningTrees(True).marginals,
    "projective trees, one root": ProjectiveTrees(True).marginals,
    f"{INVERSE}, many roots": lambda *given: inverse_marginals(*given, single_root=False),
    "spanning trees, many roots": SpanningTrees(False).marginals,
    "projective trees, many roots": ProjectiveTrees(False).marginals,
}


@dataclass(frozen=True)
class Heads:
    """A candidate for a training step."""

    structure: str | None = None
    """That of the first channel; None: heads are not asked for, as by a tagger."""
    labels: int = LABELS
    everywhere: bool = False
    """Whether all channels have that structure."""


STEPS = {
    "labels of words alone": Heads(labels=0),
    "independent heads": Heads("independent", labels=0),
    "independent heads, arcs with labels": Heads("independent"),
    "trees, arcs with labels": Heads("tree"),
    "trees in all channels, arcs with labels": Heads("tree", everywhere=True),
    "projective trees, arcs with labels": Heads("projective"),
}
REFERENCE = "independent heads, arcs with labels"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--sentences", type=int, default=64, help="of the first table")
    parser.add_argument("--words", type=int, default=40)
    parser.add_argument("--batch", type=int, default=32, help="sentences of a training step")
    parser.add_argument("--length", type=int, default=25, help="their words")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--docs", type=Path, help="write the figures to this folder of docs, too")
    given = parser.parse_args()
    keep_freed_memory()  # as in training
    torch.set_num_threads(given.threads)
    device = torch.device(given.device)
    modes: tuple[Mode, ...] = ("eager", "graph") if device.type == "cuda" else ("eager",)
    sizes, of_step = (
        Shape(*size, dropout=0.0, device=device)
        for size in ((given.sentences, given.words), (given.batch, given.length))
    )
    found = {
        "machine": machine(device),
        "torch": torch.__version__,
        "marginals": {"sentences": sizes.batch, "words": sizes.length, "rows": []},
        "steps": {"sentences": of_step.batch, "words": of_step.length, "rows": []},
    }
    for mode in modes:
        found["marginals"]["rows"] += marginals(sizes, mode, given.repeats)
        found["steps"]["rows"] += steps(of_step, mode, given.repeats)
    print("\n".join(tables(found)))
    if given.docs is not None:
        path = given.docs / "performance" / f"trees-{device.type}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def inverse_marginals(scores: Tensor, forbidden: Tensor, single_root: bool) -> Tensor:
    """The marginals of arcs by the matrix-tree theorem, for sentences without padding.

    With one root, the first column of the Laplacian is ROOT's scores (Koo et al. 2007).

    Args:
        scores: (B, …, n, n+1), ROOT last.
        forbidden: true for arcs that cannot be, broadcastable to the scores.
        single_root: whether one word has ROOT as its head, or one or more.
    """
    given = scores.double().masked_fill(forbidden, -torch.inf)
    weights = (given - given.amax(-1, keepdim=True)).exp()
    arcs, root = weights[..., :-1], weights[..., -1]
    laplacian = torch.diag_embed(arcs.sum(-1)) - arcs
    if single_root:
        laplacian = torch.cat([root.unsqueeze(-1), laplacian[..., 1:]], -1)
    else:
        laplacian = laplacian + torch.diag_embed(root)
    slope = torch.linalg.inv_ex(laplacian).inverse.mT  # of log Z by the Laplacian
    own = slope.diagonal(dim1=-2, dim2=-1)
    if single_root:
        is_not_root = torch.arange(own.shape[-1], device=own.device) > 0
        of_root, own, slope = slope[..., 0], own * is_not_root, slope * is_not_root
    else:
        of_root = own
    found = torch.cat([arcs * (own.unsqueeze(-1) - slope), (root * of_root).unsqueeze(-1)], -1)
    return found.to(scores.dtype)


def marginals(shape: Shape, mode: Mode, repeats: int) -> list[dict[str, Any]]:
    """For each candidate milliseconds without and with the gradient, and ratios to the inverse."""
    torch.manual_seed(0)
    n, device = shape.length, shape.device
    scores = torch.randn(shape.batch, 1, n, n + 1, device=device).requires_grad_()
    forbidden = torch.eye(n, n + 1, dtype=torch.bool, device=device)
    direction = torch.randn_like(scores)

    def forward(find: Callable[..., Tensor]) -> Step:
        return lambda: _ignored(find(scores.detach(), forbidden))

    def both(find: Callable[..., Tensor]) -> Step:
        return lambda: _ignored(torch.autograd.grad(find(scores, forbidden), scores, direction))

    candidates = {
        (name, kind): make(find)
        for name, find in MARGINALS.items()
        for kind, make in (("forward", forward), ("both", both))
    }
    rounds = take_turns(_in_mode(candidates, mode), shape, repeats)
    rows = []
    for name in MARGINALS:
        reference = f"{INVERSE}, {name.rpartition(', ')[2]}"
        row: dict[str, Any] = {"name": name, "mode": mode}
        for kind in ("forward", "both"):
            row[kind] = _milliseconds(rounds, (name, kind))
            row[f"{kind} / inverse"] = _ratio(rounds, (name, kind), (reference, kind))
        rows.append(row)
    return rows


def steps(shape: Shape, mode: Mode, repeats: int) -> list[dict[str, Any]]:
    """Milliseconds of a training step by its heads, and ratios to independent ones."""
    candidates = {name: training_step(heads, shape) for name, heads in STEPS.items()}
    rounds = take_turns(_in_mode(candidates, mode), shape, repeats)
    return [
        {
            "name": name,
            "mode": mode,
            "step": _milliseconds(rounds, name),
            "step / independent": _ratio(rounds, name, REFERENCE),
        }
        for name in STEPS
    ]


def training_step(heads: Heads, shape: Shape) -> Step:
    """Forward and backward, for random words and the tree that hangs from the first of them."""
    torch.manual_seed(0)
    settings = read_settings(CONFIG, []).encoder
    assert isinstance(settings, EncoderSettings)
    name = heads.structure or "independent"
    others = settings.channels - 1
    of_channels = (name,) * (others + 1) if heads.everywhere else (name, *["independent"] * others)
    kind = "independent" if name == "independent" else of_channels
    inference = replace(settings.inference, heads=kind)
    settings = replace(settings, inference=inference).for_parser(0, heads.labels)
    encoder = Encoder(VOCABULARY, settings).to(shape.device)
    size, structure = (shape.batch, shape.length), structure_named(name)
    words = torch.randint(VOCABULARY, size, device=shape.device)
    mask = torch.ones(size, dtype=torch.bool, device=shape.device)
    cotangent = torch.randn(*size, settings.labels, device=shape.device)
    gold = torch.zeros(size, dtype=torch.long, device=shape.device)
    gold[:, 0] = ROOT
    labels = torch.zeros_like(gold)

    def step() -> None:
        for parameter in encoder.parameters():
            parameter.grad = None
        posterior = encoder(words, mask, attention=heads.structure is not None)
        if heads.structure is None:
            (posterior.z_scores * cotangent).sum().backward()
            return
        scores = posterior.arc_label_scores
        scores = posterior.head_scores[:, :1] if scores is None else scores.permute(0, 3, 1, 2)
        arcs = ArcDistribution.of(scores, mask, structure)
        loss = arcs.log_partition() - arcs.given(gold, labels).log_partition()
        loss.sum().backward()

    return step


def _in_mode(candidates: dict[Any, Step], mode: Mode) -> dict[Any, Step]:
    if mode == "eager":
        return candidates
    return {key: captured(step) for key, step in candidates.items()}


def _ignored(_: Any) -> None:
    """A step has no result."""


def _milliseconds(rounds: list[dict[Any, float]], key: Any) -> float:
    return round(1e3 * statistics.median(turn[key] for turn in rounds), 3)


def _ratio(rounds: list[dict[Any, float]], key: Any, reference: Any) -> float:
    return round(statistics.median(turn[key] / turn[reference] for turn in rounds), 3)


def tables(found: dict[str, Any]) -> list[str]:
    """Two tables in Markdown."""
    several = len({row["mode"] for row in found["steps"]["rows"]}) > 1

    def lines(part: str, keys: tuple[str, ...], titles: tuple[str, ...]) -> list[str]:
        size = f"{found[part]['sentences']} × {found[part]['words']} words"
        lines = [f"| {size} | {' | '.join(titles)} |", f"|---|{'---:|' * len(titles)}"]
        for row in found[part]["rows"]:
            name = f"{row['name']}, {row['mode']}" if several else row["name"]
            lines.append(f"| {name} | {' | '.join(f'{row[key]:.2f}' for key in keys)} |")
        return lines

    return [
        f"{found['machine']}, torch {found['torch']}",
        "",
        *lines(
            "marginals",
            ("forward", "forward / inverse", "both", "both / inverse"),
            ("marginals, ms", "/ inverse", "and gradient, ms", "/ inverse"),
        ),
        "",
        *lines("steps", ("step", "step / independent"), ("training step, ms", "/ independent")),
    ]


if __name__ == "__main__":
    main()
