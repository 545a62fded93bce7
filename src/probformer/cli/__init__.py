"""The command line: one file per command, which imports torch only when the command runs."""

from __future__ import annotations

from typing import Annotated

import typer

import probformer
from probformer.cli import data
from probformer.cli.describe import describe
from probformer.cli.draw import draw
from probformer.cli.errors import run_command
from probformer.cli.evaluate import evaluate
from probformer.cli.explore import explore
from probformer.cli.export import export
from probformer.cli.parse import parse
from probformer.cli.predict import predict
from probformer.cli.quickstart import quickstart
from probformer.cli.report import report
from probformer.cli.train import train
from probformer.cli.tune import tune

app = typer.Typer(
    help="Probabilistic transformers: train, evaluate and use encoders that infer dependencies.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (
    train,
    evaluate,
    predict,
    describe,
    draw,
    parse,
    explore,
    tune,
    export,
    quickstart,
    report,
):
    app.command()(command)
app.add_typer(data.app, name="data")


def _print_version(given: bool) -> None:
    if given:
        typer.echo(f"probformer {probformer.__version__}")
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Probabilistic transformers: train, evaluate and use encoders that infer dependencies."""


def main() -> None:
    run_command(app)
