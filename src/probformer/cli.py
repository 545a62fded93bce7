"""The command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import probformer
from probformer.endings import run_command
from probformer.errors import InputError

app = typer.Typer(
    help="Probabilistic transformers: train, evaluate and use encoders that infer dependencies.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Look at data, and bring known corpora here.", no_args_is_help=True)
app.add_typer(data_app, name="data")

Config = Annotated[str, typer.Argument(help="A TOML file, or the name of one that comes along.")]
RunFolder = Annotated[Path, typer.Argument(help="A run folder.")]
DataFolder = Annotated[
    Path, typer.Option(help="Where the data is: the config's files, or folders of known corpora.")
]
Set = Annotated[
    list[str],
    typer.Option(
        "--set",
        help="Change a setting: training.epochs=3. May be repeated. "
        "A new kind (encoder.potential.kind=rotary) comes with its own defaults.",
    ),
]
ITERATION = typer.Option(
    help="From 1, or from the end: -1, the last, is the default. Of a transformer, the layer.",
    show_default=False,
)
JSON = typer.Option("--json", help="All figures as one JSON object, instead of tables.")
Corpora = Annotated[list[str] | None, typer.Argument(help="Names of corpora; all if none.")]


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"probformer {probformer.__version__}")
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="The version.")
    ] = False,
) -> None:
    """Probabilistic transformers: train, evaluate and use encoders that infer dependencies."""


@app.command()
def train(
    config: Config,
    change: Set = [],  # noqa: B006  typer copies it
    data: DataFolder = Path("."),
    out: Annotated[
        Path | None, typer.Option(help="Where the run goes; runs/NAME by default.")
    ] = None,
    seeds: Annotated[str, typer.Option(help="One run a seed: 0..4 or 0,3,7.")] = "",
    parallel: Annotated[int, typer.Option(help="How many seeds run side by side.")] = 1,
    init: Annotated[Path | None, typer.Option(help="Start from the encoder of this run.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where the run stopped, if it began.")
    ] = False,
) -> None:
    """Train a model, and evaluate its best epoch."""
    from probformer.training.commands import train_seeds

    train_seeds(config, change, data, out, seeds, parallel, init, resume)


@app.command()
def evaluate(
    run: RunFolder,
    data: DataFolder = Path("."),
    split: Annotated[str, typer.Option(help="train, dev, test or gen.")] = "test",
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
    """What the model says: words for <mask>, tags, entities, a label or a logical form."""
    from probformer.data.readers import lines_of
    from probformer.training.predict import predict_lines

    if text and file:
        raise InputError("give sentences or --file, not both")
    lines = text or lines_of(file or sys.stdin.buffer)
    for answer in predict_lines(run, lines, as_json=json):
        typer.echo(answer)


@app.command("describe")
def describe_meaning(
    run: RunFolder,
    file: Annotated[
        Path | None,
        typer.Argument(help="A text: .conllu, .mrg, .txt, or as the run's; a split if none."),
    ] = None,
    data: DataFolder = Path("."),
    split: Annotated[
        str | None, typer.Option(help="Of the run's data: train, dev (by default), test or gen.")
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="The tags that labels and channels are compared with.")
    ] = None,
    iteration: Annotated[int, ITERATION] = -1,
    out: Annotated[
        Path | None, typer.Option(help="Write a page with plots into this folder, too.")
    ] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """What labels mean and channels do: words, tags, distances, and what is linked."""
    from probformer.analysis.description_page import describe_run

    describe_run(run, file, data, split, column, iteration, out, json)


@app.command()
def draw(
    run: Annotated[str, typer.Argument(help="A run folder; for graphs, a config will do.")],
    sentence: Annotated[str, typer.Argument(help="Words with spaces between them.")] = "",
    out: Annotated[
        Path | None, typer.Option(help="A .svg, .html, .tex or .txt file; the terminal if none.")
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            help="arcs; iterations: arcs that move, of a transformer by layers; "
            "heat: a map of heads; labels: the strongest, and the words likeliest to have them "
            "without context; factors, computation: graphs."
        ),
    ] = "arcs",
    channel: Annotated[
        str | None, typer.Option(help="A number from 0, all, or average, the default.")
    ] = None,
    iteration: Annotated[int | None, ITERATION] = None,
    threshold: Annotated[
        float | None, typer.Option(help="No arcs of less probability; 0.15 by default.")
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Write them into the picture.")
    ] = False,
) -> None:
    """A picture of how a model reads a sentence, or of the model."""
    from probformer.analysis import drawing

    if out is not None:
        drawing.check_target(out)
    picture = drawing.draw(run, sentence, kind, channel, iteration, threshold, probabilities)
    drawing.show(picture, out)


@app.command()
def parse(
    run: RunFolder,
    file: Annotated[
        Path | None,
        typer.Argument(help="CoNLL-U with gold heads; a split if none."),
    ] = None,
    data: DataFolder = Path("."),
    split: Annotated[
        str | None, typer.Option(help="Of the run's data: train, dev, test (by default) or gen.")
    ] = None,
    decoder: Annotated[
        str, typer.Option(help="argmax: each word alone; tree; projective: no arcs cross.")
    ] = "tree",
    many_roots: Annotated[
        bool, typer.Option("--many-roots", help="Trees may have several words at the root.")
    ] = False,
    iteration: Annotated[int, ITERATION] = -1,
    every_iteration: Annotated[
        bool, typer.Option("--every-iteration", help="A table over all iterations, or layers, too.")
    ] = False,
    channel: Annotated[
        str,
        typer.Option(help="Which to show and write: a number from 0, best (by UUAS), or average."),
    ] = "average",
    out: Annotated[
        Path | None, typer.Option(help="Write the sentences with the heads that were found.")
    ] = None,
    json: Annotated[bool, JSON] = False,
) -> None:
    """How often the heads that a model found are the gold ones, beside simple baselines."""
    from probformer.analysis.parse_command import parse_file
    from probformer.analysis.parsing import AVERAGE, BEST, Question
    from probformer.analysis.reading import channel_of

    chosen = channel_of(channel, AVERAGE, BEST)
    question = Question(decoder, not many_roots, iteration, chosen, every_iteration)
    parse_file(run, file, data, question, split, out, json)


@app.command()
def explore(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.")],
    data: DataFolder = Path("."),
    host: Annotated[
        str, typer.Option(help="The address to listen on; any other lets other machines in.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The next free one if it is taken.")
    ] = 8765,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
) -> None:
    """A page that shows how runs read the sentences you type."""
    from probformer.web.server import serve

    serve(runs, data, host, port, browser)


@app.command()
def tune(
    config: Config,
    space: Annotated[
        str, typer.Option(help="A TOML file: settings and their ranges; or one that comes along.")
    ],
    trials: Annotated[int, typer.Option(help="In all, over all workers.")] = 20,
    change: Set = [],  # noqa: B006  typer copies it
    data: DataFolder = Path("."),
    out: Annotated[
        Path | None,
        typer.Option(help="Where trials go, the same for all workers; runs/NAME-tuning if none."),
    ] = None,
    sampler: Annotated[str, typer.Option(help="random, or tpe: learns from trials.")] = "random",
    prune: Annotated[bool, typer.Option("--prune", help="Stop trials below the median.")] = False,
    storage: Annotated[
        str | None,
        typer.Option(help="Of Optuna: a URL, or a journal file; study.db in the folder if none."),
    ] = None,
    study: Annotated[str | None, typer.Option(help="Its name; the config's if none.")] = None,
    seed: Annotated[int, typer.Option(help="Of the values that are drawn.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Draw the search into this SVG file.")] = None,
) -> None:
    """Search for better settings. Start it several times for several workers, or to go on."""
    from probformer.tuning.command import tune as search

    search(config, space, change, data, out, trials, sampler, prune, storage, study, seed, plot)


@app.command()
def export(
    run: RunFolder,
    onnx: Annotated[bool, typer.Option("--onnx", help="Write model.onnx.")] = False,
    torch: Annotated[
        bool, typer.Option("--torch", help="Write model.pt2, a program of torch.export.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Where the file goes; into the run folder by default.")
    ] = None,
) -> None:
    """Write a trained model as a file that runs without Probformer, and compare it with PyTorch."""
    from probformer.export import export_run

    export_run(run, onnx, torch, out)


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


@data_app.command("list")
def list_data() -> None:
    """The corpora that are known, their licences, and what can be fetched."""
    from probformer.data.commands import print_corpora

    print_corpora()


@data_app.command("fetch")
def fetch_data(
    corpora: Annotated[list[str], typer.Argument(help="Names of corpora.")],
    data: DataFolder = Path("."),
    source: Annotated[
        str | None, typer.Option("--from", help="A folder, an archive, or an archive's address.")
    ] = None,
) -> None:
    """Download corpora into folders of their own, or take them from a place of yours."""
    from probformer.data.commands import fetch_corpora

    fetch_corpora(corpora, data, source)


@data_app.command("check")
def check_data(corpora: Corpora = None, data: DataFolder = Path(".")) -> None:
    """Whether the files of corpora are those that are known, byte for byte."""
    from probformer.data.commands import check_corpora

    check_corpora(corpora or [], data)


@app.command()
def report(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders, folders of them, or files of --save.")
    ],
    markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown.")] = False,
    curves: Annotated[
        Path | None, typer.Option(help="Draw the curves into this SVG file too.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Keep the figures in this file, a line of JSON a run.")
    ] = None,
) -> None:
    """What finished runs came to, over seeds, beside the published figures."""
    from probformer.training.results import print_report

    print_report(runs, markdown, curves, save)


def main() -> None:
    run_command(app)


if __name__ == "__main__":
    main()
