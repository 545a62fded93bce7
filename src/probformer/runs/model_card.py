"""README.md of a run folder: a model card.

It begins with the metadata of Hugging Face. The licence of the weights is for those who share them
to choose; the card states the licence of the data if it is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

from probformer.config import BuiltinData, DataSettings
from probformer.data.registry import CorpusEntry, list_corpora
from probformer.runs.figures import format_metrics

if TYPE_CHECKING:
    from probformer.runs.run_folder import Run

_PIPELINES = {
    "mlm": "fill-mask",
    "tagging": "token-classification",
    "ner": "token-classification",
    "classification": "text-classification",
}
_NOT_CHOSEN = "unknown"


def model_card(run: Run, init: str | None, results: Mapping[str, Mapping[str, float]]) -> str:
    """The text of README.md.

    Args:
        run: The run that it describes.
        init: The run whose encoder training started from, if any.
        results: Metrics by split; empty before training has ended.
    """
    settings = run.settings
    encoder = run.model.encoder
    kind = encoder.settings.title
    lines = [
        *_front_matter(run, kind, init),
        f"# A {kind} trained on {settings.task.kind}",
        "",
        *_data_facts(settings.data),
        f"- Encoder: {encoder.count_parameters():,} parameters without word embeddings;",
        f"  vocabulary of {len(run.vocabulary):,} entries",
    ]
    if init:
        lines.append(f"- Began with the encoder of {init!r}, whose data has a licence of its own")
    lines.append(f"- Seed: {settings.seed}")
    lines += [f"- {split}: {format_metrics(metrics)}" for split, metrics in results.items()]
    lines += [
        "",
        "All settings are in `run.toml`. `probformer.load_run` reads this folder, and so does",
        "transformers after `import probformer.hf`.",
    ]
    if _licence(run, init) == _NOT_CHOSEN:
        lines += [
            "",
            "Before you share the weights, write their licence above, as `license`; which licences",
            "are possible depends on the licence of the data.",
        ]
    return "\n".join(lines) + "\n"


def _front_matter(run: Run, kind: str, init: str | None) -> Iterable[str]:
    yield "---"
    yield "library_name: probformer"
    yield f"license: {_licence(run, init)}"
    task = run.settings.task.kind
    if task in _PIPELINES:
        yield f"pipeline_tag: {_PIPELINES[task]}"
    yield from ("tags:", f"- {kind.replace(' ', '-')}", f"- {task}", "---", "")


def _licence(run: Run, init: str | None) -> str:
    """The licence of the weights: Probformer's if its built-in corpus is the only data."""
    ours = isinstance(run.settings.data, BuiltinData) and not init
    return "mit" if ours else _NOT_CHOSEN


def _data_facts(data: DataSettings) -> list[str]:
    if isinstance(data, BuiltinData):
        size = f"{data.size:,} sentences of Probformer's built-in corpus, seed {data.seed}"
        return [f"- Data: {size}", "- Licence of the data: MIT"]
    facts = [f"- Data: {data.train}, {data.dev} and {data.test} in {data.folder!r}"]
    corpus = known_corpus(data.folder)
    if corpus is None:
        return [*facts, "- Licence of the data: not known to Probformer"]
    return [f"{facts[0]}: {corpus.title}", f"- Licence of the data: {corpus.licence}"]


def known_corpus(folder: str) -> CorpusEntry | None:
    """The corpus of the registry whose folder has this name."""
    name = PurePath(folder).name
    return next((corpus for corpus in list_corpora() if corpus.name == name), None)
