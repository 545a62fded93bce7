"""Tags chosen together are the likeliest of all that fit a pattern, found by trying all of them."""

from itertools import product
from pathlib import Path

import pytest
import torch

from helpers.messages import refused
from helpers.runs import saved
from probformer.config import CogsSettings
from probformer.data.corpus import load_corpus
from probformer.runs.run_folder import load_run
from probformer.tasks.cogs import KINDS, Cogs
from probformer.tasks.labels import Labels
from probformer.tasks.patterns import Pattern, likeliest_together

NAMES = {
    "parent": ["none", "0", "1"],
    "role": ["", "agent", "theme"],
    "category": ["", "PNOUN"],
    "noun_type": ["", "DEF"],
    "verb_name": ["eat", "", "see"],
}
PATTERNS = [
    Pattern("", "", "", False, False),
    Pattern("agent", "PNOUN", "", False, True),
    Pattern("theme", "PNOUN", "DEF", False, True),
    Pattern("", "", "", True, False),
]


def pattern_of(tags):
    has_name, has_parent = tags["verb_name"] != "", tags["parent"] != "none"
    return Pattern(tags["role"], tags["category"], tags["noun_type"], has_name, has_parent)


def likeliest(logits, patterns, names):
    none = {"parent": "none", "verb_name": ""}
    numbers = {kind: names[kind].index(x) for kind, x in none.items() if x in names[kind]}
    return likeliest_together(logits, patterns, lambda kind, x: names[kind].index(x), numbers)


def test_the_likeliest_of_all_that_fit():
    logits = {kind: 3 * torch.randn(4, 25, len(names)) for kind, names in NAMES.items()}
    chosen = likeliest(logits, PATTERNS, NAMES)
    assert list(chosen) == list(NAMES)
    log_p = {kind: x.log_softmax(-1) for kind, x in logits.items()}
    fitting = [
        numbers
        for numbers in product(*(range(len(names)) for names in NAMES.values()))
        if pattern_of({k: NAMES[k][n] for k, n in zip(NAMES, numbers, strict=True)}) in PATTERNS
    ]
    changed = 0
    for place in product(range(4), range(25)):
        best = max(
            fitting,
            key=lambda numbers: sum(
                log_p[k][place][n] for k, n in zip(NAMES, numbers, strict=True)
            ),
        )
        assert tuple(chosen[kind][place].item() for kind in NAMES) == best
        changed += any(log_p[k][place].argmax() != n for k, n in zip(NAMES, best, strict=True))
    assert changed > 50  # it would be no test if each for itself did as well


def test_what_all_words_of_training_have_needs_no_class_for_none():
    names = {**NAMES, "parent": ["0", "1"], "verb_name": ["eat", "see"]}
    patterns = [Pattern("agent", "PNOUN", "", True, True), Pattern("", "", "", True, True)]
    logits = {kind: 3 * torch.randn(4, 25, len(found)) for kind, found in names.items()}
    chosen = likeliest(logits, patterns, names)
    for kind in ("parent", "verb_name"):
        assert torch.equal(chosen[kind], logits[kind].argmax(-1))
    assert torch.equal(chosen["role"] == 1, chosen["category"] == 1)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return load_run(saved(tmp_path_factory.mktemp("cogs"), "cogs", by_pattern=True))


def test_what_a_run_answers_fits_the_patterns_of_its_training_data(run):
    seen = set()
    for sentence in load_corpus(run.settings.data, Path(".")).splits["train"]:
        classes = run.task._classes_of(sentence)
        for word in range(len(sentence)):
            seen.add(pattern_of({kind: classes[kind][word] for kind in KINDS}))
    assert set(run.task.patterns) == seen
    vectors = 5 * torch.randn(1, 30, run.model.encoder.width)
    logits = run.model.readout(vectors, torch.ones(1, 30, dtype=torch.bool))
    chosen = run.task._chosen(logits)
    for word in range(30):
        tags = {kind: run.task._name(kind, chosen[kind][0, word].item()) for kind in KINDS}
        assert pattern_of(tags) in seen
    assert any((chosen[kind] != logits[kind].argmax(-1)).any() for kind in KINDS)


def test_without_them_each_tag_is_chosen_for_itself(run):
    task = Cogs(CogsSettings(), run.vocabulary)
    task.learn_classes(load_corpus(run.settings.data, Path(".")).splits["train"])
    assert task.patterns == []
    assert "patterns" not in task.state()
    logits = {kind: torch.randn(2, 5, len(labels)) for kind, labels in task.labels.items()}
    for kind, numbers in task._chosen(logits).items():
        assert torch.equal(numbers, logits[kind].argmax(-1))


def test_a_parent_that_may_be_none_has_no_patterns():
    with refused("by_pattern", "none_as_previous"):
        CogsSettings(by_pattern=True, none_as_previous=True)


@pytest.mark.parametrize("parent", ["relative", "attention"])
def test_a_task_may_learn_from_words_that_all_have_a_parent(run, parent):
    sentences = load_corpus(run.settings.data, Path(".")).splits["train"]
    task = Cogs(CogsSettings(by_pattern=True, parent=parent), run.vocabulary)
    task.learn_classes(sentences)
    task.patterns = [x for x in task.patterns if x.has_parent and not x.has_verb_name]
    if parent == "relative":
        task.labels["parent"] = Labels(x for x in task.labels["parent"].names if x != "none")
    width = {kind: len(labels) for kind, labels in task.labels.items()}
    width["parent"] = 6 if parent == "attention" else width["parent"]
    chosen = task._chosen({kind: torch.randn(2, 5, width[kind]) for kind in KINDS})
    names = {task._name("parent", number) for number in chosen["parent"].flatten().tolist()}
    assert "none" not in names
    assert task.warnings() == []
