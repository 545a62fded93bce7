"""`probformer parse` for latent heads: scores as tables or JSON, trees as CoNLL-U."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from probformer.analysis.input_text import (
    check_not_overwritten,
    check_source,
    count_unknown,
    read_text,
)
from probformer.analysis.parse.scoring import FoundHeads, ParserOptions, parse_sentences
from probformer.analysis.parse.tables import figures, print_tables
from probformer.data.formats.conllu import Annotation, annotated, as_conllu
from probformer.data.readers import lines_of
from probformer.data.sentence import Sentence
from probformer.errors import counted, require
from probformer.runs.files import require_writable, write_text
from probformer.runs.run_folder import Run


def parse_file(
    run: Run,
    file: Path | None,
    data: Path,
    options: ParserOptions,
    split: str | None = None,
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """Score the heads of channels on a file or, without one, on a split, by default test."""
    check_source(file, split)
    if out is not None:
        _check_trees(out, file, options)
    run.model.to("cuda" if torch.cuda.is_available() else "cpu")
    sentences = read_text(run, file, data, split or "test", "conllu")
    if out is not None:
        check_not_overwritten(out, {sentence.path for sentence in sentences} - {""})
    parsing = parse_sentences(run, sentences, options)
    unknown = count_unknown(run, sentences)
    written = ""
    if out is not None:  # before printing, as a reader like `head` may close the pipe
        written = _write_trees(out, file, sentences, parsing)
    if as_json:
        print(json.dumps(figures(parsing, sentences, options, unknown), ensure_ascii=False))
    else:
        print_tables(parsing, sentences, options, unknown)
    if out is not None:
        print(written, file=sys.stderr if as_json else sys.stdout)


def _check_trees(out: Path, file: Path | None, options: ParserOptions) -> None:
    message = "--out writes trees: it needs the decoder tree or projective, got argmax"
    require(options.decoder != "argmax", message)
    if file is not None and file.exists():
        require(file.is_file(), f"{file}: --out needs a regular file, as it is read twice")
    require_writable(out)


def _write_trees(
    out: Path, file: Path | None, sentences: list[Sentence], parsing: FoundHeads
) -> str:
    """Write the lines of the file, or of the sentences, with the heads found; what to say of it."""
    unparsed = lines_of(file) if file else (line for s in sentences for line in as_conllu(s))
    lines, dropped = annotated(unparsed, (Annotation(heads.tolist()) for heads in parsing.heads))
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, "".join(f"{line}\n" for line in lines))
    lost = f", without the enhanced dependencies of {counted(dropped, 'sentence')} with new heads"
    return f"the trees are in {out}{lost if dropped else ''}"
