"""The formats of sentence files: one module for each, registered here."""

from probformer.data.formats.columns import Columns
from probformer.data.formats.conllu import Conllu
from probformer.data.formats.format import (
    BadLine,
    Format,
    Line,
    RawLine,
    find_format,
    format_names,
    formats_by_suffix,
    register_format,
)
from probformer.data.formats.mrg import Mrg
from probformer.data.formats.text import Text
from probformer.data.formats.tsv import Tsv

for _format in (Text, Tsv, Columns, Conllu, Mrg):
    register_format(_format)

__all__ = [
    "BadLine",
    "Format",
    "Line",
    "RawLine",
    "find_format",
    "format_names",
    "formats_by_suffix",
    "register_format",
]
