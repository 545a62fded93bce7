"""`probformer export`: writes the files, and prints how far they differ from PyTorch."""

from __future__ import annotations

from pathlib import Path

from probformer.errors import require
from probformer.export.comparison import lengths_of
from probformer.export.files import as_onnx, as_program, check_onnx_packages
from probformer.runs.files import require_writable, write_bytes
from probformer.runs.run_folder import load_run


def export_run(folder: Path, onnx: bool, torch_program: bool, out: Path | None) -> None:
    """Write a run's model as one or two files, and print how far they differ from PyTorch.

    Args:
        folder: The run folder.
        onnx: Whether to write model.onnx.
        torch_program: Whether to write model.pt2.
        out: Another path, for one file; by default the run folder.

    Raises:
        InputError: No file is chosen, a file exists already, the run is a parser or has heads that
            form trees, or a file differs from PyTorch.
    """
    require(onnx or torch_program, "choose what to write: --onnx, --torch, or both")
    require(out is None or not (onnx and torch_program), "--out is for one file: --onnx or --torch")
    makers = [(onnx, "model.onnx", as_onnx), (torch_program, "model.pt2", as_program)]
    targets = {out or folder / name: make for wanted, name, make in makers if wanted}
    run = load_run(folder)
    no_trees = "cannot be exported: trees have no graph that fits sentences of every length"
    is_parser = run.settings.task.kind == "parsing"
    require(not (is_parser or run.settings.encoder.has_trees), f"{folder}: {no_trees}")
    for path in targets:
        require(not path.exists(), f"{path}: exists already; --out chooses another file")
        require_writable(path)
    if onnx:
        check_onnx_packages()
    for path, make in targets.items():
        content, difference, compared = make(run)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, content)
        figure = f"differs from PyTorch by {difference:.1e} at most, in {compared} batches"
        print(f"{path}: {figure} of 1 to {lengths_of(run.model)[-1]} words")
