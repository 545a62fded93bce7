"""A trained model as one file that runs without this library: ONNX, or a program of torch.export.

The graph takes words (B, n) and their mask, of any batch size and length. It is compared with the
model it was made of before it is written.
"""

from __future__ import annotations

import copy
import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from probformer.crf.potentials import WordPotential
from probformer.crf.potentials.all_pairs import AllPairs
from probformer.errors import InputError, require, require_packages
from probformer.models.readout import Model, SeveralReadouts
from probformer.runs.files import require_writable, write_bytes
from probformer.runs.run_folder import Run, load_run
from probformer.tasks.classification import Classification
from probformer.tasks.cogs import Cogs
from probformer.tasks.mlm import MaskedLM
from probformer.tasks.tagging import Tagging
from probformer.tasks.task import Task

Outputs = dict[str, Tensor]
Answers = Callable[[Tensor, Tensor], Outputs]
TOLERANCE = 1e-4
"""How far a file's answers may be from those of the model, measured by the largest if above 1."""
_LENGTHS, _BATCHES = (1, 2, 3, 4, 5, 8, 13, 21, 34, 60), (1, 2, 5)


def export_run(folder: Path, onnx: bool, torch_program: bool, out: Path | None) -> None:
    """Writes the files that are asked for, and says how well they agree with the model."""
    require(onnx or torch_program, "choose what to write: --onnx, --torch, or both")
    require(out is None or not (onnx and torch_program), "--out is for one file: --onnx or --torch")
    makers = [(onnx, "model.onnx", as_onnx), (torch_program, "model.pt2", as_program)]
    targets = {out or folder / name: make for wanted, name, make in makers if wanted}
    run = load_run(folder)
    for path in targets:
        require(not path.exists(), f"{path}: is there already; --out chooses another file")
        require_writable(path)
    if onnx:
        check_onnx_packages()
    for path, make in targets.items():
        content, difference, compared = make(run)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, content)
        figure = f"differs from PyTorch by {difference:.1e} at most, in {compared} batches"
        print(f"{path}: {figure} of 1 to {_lengths(run.model)[-1]} words")


def check_onnx_packages() -> None:
    require_packages("ONNX", "onnx onnxruntime onnxscript", "probformer[export]")


class Answering(nn.Module):
    """From words to all that is told of them, by name."""

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
    """The file, how far it is from the model, and in how many batches that was measured."""
    expected = _expected(run)
    with _quietly():
        buffer = io.BytesIO()
        torch.export.save(_traced(run), buffer)
        buffer.seek(0)
        program = torch.export.load(buffer).module()
        difference = _compare(expected, lambda words, mask: program(words, mask), "model.pt2")
    return buffer.getvalue(), difference, len(expected)


def as_onnx(run: Run) -> tuple[bytes, float, int]:
    """The same for ONNX; class names are in the file's metadata."""
    import onnxruntime

    expected = _expected(run)
    names = [*expected[0][2]]
    with _quietly():
        converted = torch.onnx.export(
            _traced(run),
            input_names=["words", "mask"],
            output_names=names,
            dynamo=True,
            verbose=False,
        )
        assert converted is not None
        model = converted.model_proto
        _describe(model, run)
        content = model.SerializeToString()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # what goes wrong is raised, too
        session = onnxruntime.InferenceSession(content, options, ["CPUExecutionProvider"])

        def answers(words: Tensor, mask: Tensor) -> Outputs:
            found = session.run(names, {"words": words.numpy(), "mask": mask.numpy()})
            return dict(zip(names, map(torch.as_tensor, found), strict=True))

        difference = _compare(expected, answers, "model.onnx")
    return content, difference, len(expected)


def _traced(run: Run) -> ExportedProgram:
    """The model as a graph in which the sizes of a batch are free."""
    sizes = {0: Dim("batch"), 1: Dim("length", max=run.model.encoder.settings.max_words)}
    example = _batch(run, sentences=3, longest=_lengths(run.model)[-1])
    answering = Answering(_with_all_pairs(run.model)).eval()
    program = torch.export.export(answering, example, dynamic_shapes=(sizes, sizes), strict=True)
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # which would tell the paths of this machine
    return program


def _with_all_pairs(model: Model) -> Model:
    """A copy whose potentials look at pairs in a way that one graph can hold for all lengths."""
    model = copy.deepcopy(model)
    for module in model.modules():
        if isinstance(module, WordPotential):
            object.__setattr__(module, "pair_implementation", AllPairs)  # no parameter
    return model


def _lengths(model: Model) -> list[int]:
    longest = model.encoder.settings.max_words or max(_LENGTHS)
    return sorted({min(n, longest) for n in _LENGTHS})


def _batch(run: Run, sentences: int, longest: int) -> tuple[Tensor, Tensor]:
    """Random words; the first sentence has no padding."""
    random = torch.Generator().manual_seed(sentences * 1000 + longest)
    words = torch.randint(len(run.vocabulary), (sentences, longest), generator=random)
    lengths = torch.randint(1, longest + 1, (sentences, 1), generator=random)
    lengths[0] = longest
    return words, torch.arange(longest) < lengths


def _expected(run: Run) -> list[tuple[Tensor, Tensor, Outputs]]:
    model = Answering(run.model).eval()
    batches = [_batch(run, b, n) for n in _lengths(run.model) for b in _BATCHES]
    with torch.no_grad():
        return [(words, mask, model(words, mask)) for words, mask in batches]


@torch.no_grad()
def _compare(expected: list[tuple[Tensor, Tensor, Outputs]], answers: Answers, name: str) -> float:
    worst = 0.0
    for words, mask, outputs in expected:
        found = answers(words, mask)
        for key, value in outputs.items():
            size = max(1.0, float(value.abs().max()))
            difference = float((found[key] - value).abs().max()) / size
            worst = max(worst, difference)
            if not difference <= TOLERANCE:  # NaN is no small number
                shape = f"{words.shape[0]} sentences of up to {words.shape[1]} words"
                wrong = f"{key} would differ from PyTorch by {difference:.1e} for {shape}"
                raise InputError(f"{name}: {wrong}, so it was not written")
    return worst


def _describe(model: Any, run: Run) -> None:
    """What a program needs to make sense of the numbers: metadata, and sizes by name."""
    classes = json.dumps(_classes(run.task), ensure_ascii=False)
    for key, value in {"task": run.settings.task.kind, "classes": classes}.items():
        model.metadata_props.add(key=key, value=value)
    del model.graph.value_info[:]  # sizes in between, under other names
    found = [dim.dim_param for dim in model.graph.input[0].type.tensor_type.shape.dim]
    names = dict(zip(found, ("batch", "length"), strict=True))
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in names:
                dim.dim_param = names[dim.dim_param]


def _classes(task: Task) -> dict[str, list[str]]:
    """By output, the names of its columns; a pointer to words has none."""
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
def _quietly() -> Iterator[None]:
    """What the exporters say is for their authors."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    nowhere = io.StringIO()
    try:
        with warnings.catch_warnings(), redirect_stdout(nowhere), redirect_stderr(nowhere):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
