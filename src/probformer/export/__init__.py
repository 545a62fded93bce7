"""A trained model as one file that runs without Probformer: ONNX, or torch.export."""

from probformer.export.command import export_run
from probformer.export.comparison import TOLERANCE
from probformer.export.files import Answering, as_onnx, as_program, check_onnx_packages

__all__ = ["TOLERANCE", "Answering", "as_onnx", "as_program", "check_onnx_packages", "export_run"]
