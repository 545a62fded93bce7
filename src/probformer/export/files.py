"""The content of the exported files: a graph of words (B, n) and their mask, of any sizes.

Each file is compared with the model in PyTorch before its content is returned.
"""

from __future__ import annotations

import copy
import io
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from probformer.crf.potentials import WordPotential
from probformer.crf.potentials.all_pairs import AllPairs
from probformer.errors import InputError, require_packages
from probformer.export.comparison import (
    Outputs,
    expected_outputs,
    largest_difference,
    lengths_of,
    random_batch,
)
from probformer.models.readout import Model, SeveralReadouts
from probformer.runs.run_folder import Run
from probformer.tasks.classification import Classification
from probformer.tasks.cogs import Cogs
from probformer.tasks.mlm import MaskedLM
from probformer.tasks.tagging import Tagging
from probformer.tasks.task import Task


def check_onnx_packages() -> None:
    require_packages("ONNX", "onnx onnxruntime onnxscript", "probformer[export]")


class Answering(nn.Module):
    """The model as a function from words and mask (B, n) to all its outputs, by name."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: Tensor, mask: Tensor) -> Outputs:
        output = self.model(words, mask, attention=True)
        vectors, readout = output.representation, output.readout
        if isinstance(readout, SeveralReadouts):
            answers = {f"{name}_logits": x for name, x in readout(vectors, mask).items()}
        else:
            answers = {"logits": readout(vectors)}
        heads = output.posterior.head_marginals
        assert heads is not None
        return {**answers, "head_marginals": heads}


def as_program(run: Run) -> tuple[bytes, float, int]:
    """The model as a program of torch.export.

    Args:
        run: A loaded run folder; its model stays as it is.

    Returns:
        The file, its largest difference from PyTorch, and the number of compared batches.

    Raises:
        InputError: The file would differ from PyTorch.
    """
    model = _copy(run.model)
    expected = expected_outputs(run, model)
    with _quiet():
        buffer = io.BytesIO()
        torch.export.save(_traced(run, model), buffer)
        buffer.seek(0)
        program = torch.export.load(buffer).module()
        difference = largest_difference(expected, lambda *batch: program(*batch), "model.pt2")
    return buffer.getvalue(), difference, len(expected)


def as_onnx(run: Run) -> tuple[bytes, float, int]:
    """The model as ONNX, with the names of its classes in the metadata.

    Args:
        run: A loaded run folder; its model stays as it is.

    Returns:
        The file, its largest difference from PyTorch, and the number of compared batches.

    Raises:
        InputError: The file would differ from PyTorch.
    """
    import onnxruntime

    model = _copy(run.model)
    expected = expected_outputs(run, model)
    names = [*expected[0][2]]
    with _quiet():
        converted = torch.onnx.export(
            _traced(run, model),
            input_names=["words", "mask"],
            output_names=names,
            dynamo=True,
            verbose=False,
        )
        assert converted is not None
        graph = converted.model_proto
        _describe(graph, run)
        content = graph.SerializeToString()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # errors are raised anyway
        session = onnxruntime.InferenceSession(content, options, ["CPUExecutionProvider"])

        def answers(words: Tensor, mask: Tensor) -> Outputs:
            found = session.run(names, {"words": words.numpy(), "mask": mask.numpy()})
            return dict(zip(names, map(torch.as_tensor, found), strict=True))

        difference = largest_difference(expected, answers, "model.onnx")
    return content, difference, len(expected)


def _copy(model: Model) -> Answering:
    """A copy in evaluation mode: the export changes it, and the model itself must stay as it is."""
    return Answering(copy.deepcopy(model)).eval()


def _traced(run: Run, model: Answering) -> ExportedProgram:
    """A graph with symbolic batch size and length; the potentials of the copy are changed."""
    sizes = {0: Dim("batch"), 1: Dim("length", max=run.model.encoder.settings.max_words)}
    example = random_batch(run, sentences=3, longest=lengths_of(run.model)[-1])
    _use_all_pairs(model)
    program = torch.export.export(model, example, dynamic_shapes=(sizes, sizes), strict=True)
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # it contains paths of this machine
    return program


def _use_all_pairs(model: nn.Module) -> None:
    """Compute potentials over all pairs of words, so that one graph holds all lengths."""
    for module in model.modules():
        if isinstance(module, WordPotential):
            object.__setattr__(module, "pair_implementation", AllPairs)  # no parameter


def _describe(model: Any, run: Run) -> None:
    """Add metadata, and names of the symbolic sizes."""
    classes = json.dumps(_classes(run.task), ensure_ascii=False)
    for key, value in {"task": run.settings.task.kind, "classes": classes}.items():
        model.metadata_props.add(key=key, value=value)
    del model.graph.value_info[:]  # intermediate sizes, under other names
    found = [dim.dim_param for dim in model.graph.input[0].type.tensor_type.shape.dim]
    names = dict(zip(found, ("batch", "length"), strict=True))
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in names:
                dim.dim_param = names[dim.dim_param]


def _classes(task: Task) -> dict[str, list[str]]:
    """By output, the names of its classes; a pointer to words has none."""
    match task:
        case MaskedLM():
            return {"logits": list(task.vocabulary.words[: task.classes])}
        case Tagging():
            return {"logits": task.tags.names}
        case Classification():
            return {"logits": task.labels.names}
        case Cogs():
            points = task.settings.points
            kinds = [kind for kind in task.labels if not (points and kind == "parent")]
            return {f"{kind}_logits": task.labels[kind].names for kind in kinds}
    raise InputError(f"there is no export for the task {type(task).__name__}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences the warnings and progress lines of the exporters until the end of the block."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    nowhere = io.StringIO()
    try:
        with warnings.catch_warnings(), redirect_stdout(nowhere), redirect_stderr(nowhere):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
