"""The command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from probformer.errors import InputError

app = typer.Typer(
    help="Probabilistic transformers: train, evaluate and use encoders that infer dependencies.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Look at data.", no_args_is_help=True)
app.add_typer(data_app, name="data")

Config = Annotated[str, typer.Argument(help="A TOML file, or the name of one that comes along.")]
RunFolder = Annotated[Path, typer.Argument(help="A run folder.")]
DataFolder = Annotated[Path, typer.Option(help="The folder with the corpora.")]
Set = Annotated[
    list[str], typer.Option("--set", help="Change a setting: training.epochs=3. May be repeated.")
]


@app.command()
def train(
    config: Config,
    change: Set = [],  # noqa: B006  typer copies it
    data: DataFolder = Path("."),
    out: Annotated[
        Path | None, typer.Option(help="Where the run goes; runs/NAME by default.")
    ] = None,
    seeds: Annotated[str, typer.Option(help="One run a seed: 0..4 or 0,3,7.")] = "",
    parallel: Annotated[int, typer.Option(help="So many seeds side by side.")] = 1,
    init: Annotated[Path | None, typer.Option(help="Start from the encoder of this run.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run stopped.")] = False,
) -> None:
    """Train a model, and evaluate its best epoch."""
    from probformer.training.commands import train_seeds

    train_seeds(config, change, data, out, seeds, parallel, init, resume)


@app.command()
def evaluate(
    run: RunFolder,
    data: DataFolder = Path("."),
    split: Annotated[str, typer.Option(help="train, dev or test.")] = "test",
) -> None:
    """The figures of a trained model on a split of its data."""
    from probformer.training.commands import evaluate_run

    evaluate_run(run, data, split)


@app.command()
def predict(
    run: RunFolder,
    text: Annotated[
        list[str] | None, typer.Argument(help="Sentences; standard input if none.")
    ] = None,
    file: Annotated[Path | None, typer.Option(help="A file with a sentence a line.")] = None,
    json: Annotated[bool, typer.Option("--json", help="A JSON object a sentence.")] = False,
) -> None:
    """Tags for words, or words for <mask>."""
    from probformer.training.predict import predict_lines

    if text and file:
        raise InputError("give sentences or --file, not both")
    lines = text or (_lines_of(file) if file else sys.stdin)
    for answer in predict_lines(run, lines, as_json=json):
        typer.echo(answer)


@app.command()
def quickstart(
    out: Annotated[Path, typer.Option(help="Where the runs go.")] = Path("runs/quickstart"),
) -> None:
    """Train small models on the built-in corpus and compare them: a few minutes on two cores."""
    from probformer.training.quickstart import run_quickstart

    run_quickstart(out)


@data_app.command("describe")
def describe(config: Config, change: Set = [], data: DataFolder = Path(".")) -> None:  # noqa: B006
    """Sizes, vocabulary and columns of the data that a config names."""
    from probformer.training.commands import describe_data

    describe_data(config, change, data)


def _lines_of(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None


def main() -> None:
    """Errors that a user can mend are one sentence and exit status 2."""
    _guarded(app)


def _guarded(command: Callable[[], Any]) -> None:
    try:
        command()
    except InputError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename or 'a file'}: {error.strerror or error}")
    except RuntimeError as error:
        if "out of memory" not in str(error):
            raise
        _fail("out of memory: a smaller training.chunk or training.batch may help")


def _fail(message: str) -> None:
    typer.echo(f"error: {message}", err=True)
    raise SystemExit(2)


if __name__ == "__main__":
    main()
