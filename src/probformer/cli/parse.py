"""`probformer parse`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from probformer.cli.arguments import ITERATION, DataFolder, RunFolder
from probformer.errors import require

_OF_PARSERS, _OF_CHANNELS = "Parsers", "Heads of channels"


def parse(
    run: RunFolder,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT",
            help="Sentences, with spaces between words, or files: CoNLL-U, or text with a sentence "
            "a line; - or nothing is standard input. For scores of channels, the default of runs "
            "of other tasks: a CoNLL-U file with gold heads, or nothing for a split.",
        ),
    ] = None,
    data: DataFolder = Path("."),
    split: Annotated[
        str | None,
        typer.Option(help="A split of the run's data in place of INPUT: train, dev, test or gen."),
    ] = None,
    decoder: Annotated[
        str | None,
        typer.Option(
            help="tree: the best spanning tree; projective: the best tree without crossing arcs; "
            "argmax: the best head of each word; mbr, for parsers: the tree with the highest "
            "expected number of right heads. By default that of the run's settings; for runs of "
            "other tasks tree."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write into this file: what a parser prints otherwise; beside scores, the "
            "sentences with their trees as CoNLL-U."
        ),
    ] = None,
    json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print JSON: an object for each tree; for other runs one of all figures."
        ),
    ] = False,
    keep_heads: Annotated[
        bool,
        typer.Option(
            "--keep-heads",
            help="Heads that the CoNLL-U has, and their relations, are given; the others are "
            "predicted.",
            rich_help_panel=_OF_PARSERS,
        ),
    ] = False,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities",
            help="Write the probabilities of heads, relations and tags into MISC.",
            rich_help_panel=_OF_PARSERS,
        ),
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option(
            help="Draw this many trees of each sentence, in place of the best one.",
            rich_help_panel=_OF_PARSERS,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="The seed of --sample, by default 0.",
            show_default=False,
            rich_help_panel=_OF_PARSERS,
        ),
    ] = None,
    channel: Annotated[
        str | None,
        typer.Option(
            help="Score channels, and print and write this one: a number from 0, best (the "
            "highest UUAS), or average, the default of runs of other tasks.",
            rich_help_panel=_OF_CHANNELS,
        ),
    ] = None,
    iteration: Annotated[
        int | None,
        typer.Option(help=ITERATION.help, show_default=False, rich_help_panel=_OF_CHANNELS),
    ] = None,
    every_iteration: Annotated[
        bool,
        typer.Option(
            "--every-iteration",
            help="Score channels in all iterations, or layers.",
            rich_help_panel=_OF_CHANNELS,
        ),
    ] = False,
    many_roots: Annotated[
        bool,
        typer.Option(
            "--many-roots",
            help="Allow trees with several words under ROOT.",
            rich_help_panel=_OF_CHANNELS,
        ),
    ] = False,
) -> None:
    """Parse text with a parser; or score the heads of any run's channels against gold heads."""
    from probformer.analysis.marginals import channel_of
    from probformer.analysis.parse.command import parse_file
    from probformer.analysis.parse.predicted import ParseOutput, write_parses
    from probformer.analysis.parse.scoring import AVERAGE, BEST, ParserOptions
    from probformer.runs.parsing import ParseOptions, parser_of
    from probformer.runs.run_folder import load_run

    loaded, texts = load_run(run), inputs or []
    is_parser = parser_of(loaded) is not None
    scores_channels = channel is not None or every_iteration
    if is_parser and not scores_channels:
        why = "is for scores of channels: give --channel or --every-iteration, too"
        _refuse(why, iteration=iteration, many_roots=many_roots)
        if sample is None:
            _refuse("is that of --sample, which is not given", seed=seed)
        options = ParseOptions(decoder, keep_heads, sample, seed or 0)
        output = ParseOutput(out, probabilities, json)
        return write_parses(loaded, texts, data, split, options, output)
    why = "does not go with --channel and --every-iteration, which ask for scores of channels"
    if not is_parser:
        kind = loaded.settings.task.kind
        why = f"is for runs with task.kind 'parsing', the one of this run is {kind!r}"
    _refuse(why, keep_heads=keep_heads, probabilities=probabilities, sample=sample, seed=seed)
    message = f"the heads of channels are scored on one file, got {len(texts)}"
    require(len(texts) <= 1, message)
    chosen = channel_of(AVERAGE if channel is None else channel, AVERAGE, BEST)
    at = -1 if iteration is None else iteration
    options = ParserOptions(decoder or "tree", not many_roots, at, chosen, every_iteration)
    parse_file(loaded, Path(texts[0]) if texts else None, data, options, split, out, json)


def _refuse(why: str, **given: Any) -> None:
    """An error for the first of these options that is given."""
    for name, value in given.items():
        require(value is None or value is False, f"--{name.replace('_', '-')} {why}")
