"""The task parsing: its loss against enumeration, what it counts, and what it refuses."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from helpers.messages import check_wording, refused
from helpers.runs import PT, TRANSFORMER, assert_same_runs, ready, settings
from probformer.config import (
    EncoderSettings,
    FileData,
    Inference,
    ParsingSettings,
    RunSettings,
    TransformerSettings,
    VocabularySettings,
    from_dict,
)
from probformer.data.sentence import Sentence
from probformer.data.vocabulary import Vocabulary
from probformer.models.build import build_encoder
from probformer.models.readout import Model
from probformer.runs.prediction import predict
from probformer.runs.run_folder import load_run
from probformer.sentinels import ROOT, UNOBSERVED
from probformer.tasks import build_task
from probformer.tasks.batch import Plan
from probformer.training.evaluation import evaluate

WORDS = ("she", "sees", "the", "dog")
GOLD = Sentence(
    WORDS,
    {"deprel": ("nsubj", "root", "det", "obj"), "upos": ("PRON", "VERB", "DET", "NOUN")},
    (1, ROOT, 3, 1),
)
CROSSING = Sentence(WORDS, GOLD.columns, (2, ROOT, 1, 1))
ENCODERS = {
    "pt": EncoderSettings(labels=8, channels=2, inference=Inference(iterations=2)),
    "tree": EncoderSettings(labels=8, channels=2, inference=Inference(heads="tree")),
    "projective": EncoderSettings(
        labels=8, channels=2, inference=Inference(heads=("projective", "independent"))
    ),
    "transformer": TransformerSettings(width=16, layers=1, heads=2, head_width=8, feed_forward=16),
}


def parser(encoder, train=(GOLD,), dtype=torch.float32, **of_task):
    """A task and a model with initial weights."""
    torch.manual_seed(0)
    vocabulary = Vocabulary.from_sentences([sentence.words for sentence in train])
    task = build_task(ParsingSettings(**of_task), vocabulary)
    task.learn_classes(train)
    built = build_encoder(task.encoder_settings(encoder), len(vocabulary))
    return task, Model(built, task.build_readout(built)).to(dtype).eval()


def batch_of(task, *sentences):
    split = task.encode(sentences)
    return task.evaluation_batch(split, range(len(sentences)), Plan())


def run(model, task, batch):
    return model(batch.words, batch.mask, attention=task.needs_heads)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("known", [4, 2, 0])
def test_the_loss_is_that_of_the_known_heads_and_labels(encoder, known):
    """By enumeration of all trees and labels, for whole and for partial annotation."""
    task, model = parser(ENCODERS[encoder], dtype=torch.float64)
    heads = (*GOLD.heads[:known], *[UNOBSERVED] * (4 - known))
    labels = (*GOLD.columns["deprel"][:known], *"_" * (4 - known))
    partial = replace(GOLD, heads=heads, columns={**GOLD.columns, "deprel": labels})
    batch = batch_of(task, partial)
    output = run(model, task, batch)
    arcs = task.arcs(output, batch.mask)
    names = [*task.labels.names]
    total = agreeing = 0.0
    for trial in itertools.product((0, 1, 2, 3, ROOT), repeat=4):
        possible = all(head != word for word, head in enumerate(trial))
        if not possible or not arcs.structure.allows(trial):
            continue
        given = arcs.scores[0, :, range(4), list(trial)]  # (m, 4); ROOT is the last column
        total += given.logsumexp(0).sum().exp()
        if all(a in (UNOBSERVED, b) for a, b in zip(heads, trial, strict=True)):
            own = [given[:, i].logsumexp(0) for i in range(known, 4)]
            own += [given[names.index(labels[i]), i] for i in range(known)]
            agreeing += sum(own).exp()
    expected = -(agreeing / total).log() / max(known, 1)
    loss = task.loss(output, batch)
    torch.testing.assert_close(loss, expected if known else torch.zeros_like(loss))
    if known:
        loss.backward()
        assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_metrics_of_trees_that_are_right_and_wrong(encoder):
    """A model overfits one sentence; another annotation of it is scored by hand."""
    task, model = parser(ENCODERS[encoder], tags=("upos",))
    batch = batch_of(task, GOLD)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        task.loss(run(model, task, batch), batch).backward()
        optimizer.step()

    def metrics(sentence):
        other = batch_of(task, sentence)
        return task.metrics(task.count(run(model, task, other), other))

    right = metrics(GOLD)
    shares = {name: right[name] for name in ("uas", "las", "clas", "upos", "score")}
    assert shares == dict.fromkeys(shares, 1.0)
    assert right["loss"] < 0.1
    assert right["ece"] < 0.1
    columns = {"deprel": ("nsubj", "root", "case", "obj"), "upos": ("PRON", "VERB", "X", "NOUN")}
    wrong = metrics(Sentence(WORDS, columns, (1, ROOT, 1, 1)))
    assert wrong["uas"] == wrong["las"] == wrong["upos"] == wrong["score"] == 3 / 4
    names = " ".join(task.warnings())
    assert "'case' (1)" in names
    assert "'X' (1)" in names


def test_words_without_labels_and_sentences_without_heads():
    bare = Sentence(WORDS, {}, None)
    unlabelled = Sentence(WORDS, {}, GOLD.heads)
    task, model = parser(ENCODERS["tree"], train=(bare, unlabelled))
    assert model.encoder.settings.arc_labels is None
    batch = batch_of(task, unlabelled, bare)
    found = task.metrics(task.count(run(model, task, batch), batch))
    assert found["score"] == found["uas"]
    assert "las" not in found
    assert task.metric == "uas"


def test_crossing_heads_are_left_open_in_the_loss_and_scored():
    task, model = parser(ENCODERS["projective"], train=(CROSSING,))
    batch = batch_of(task, CROSSING)
    (warning,) = task.warnings()
    check_wording(warning, "1 head", "1 sentence")
    assert torch.isfinite(task.loss(run(model, task, batch), batch))
    counts = task.count(run(model, task, batch), batch)
    assert counts["uas_words"] == 4
    tree, _ = parser(ENCODERS["tree"], train=(CROSSING,))
    batch_of(tree, CROSSING)
    assert tree.warnings() == []


def test_gold_heads_that_are_no_tree_are_refused(tmp_path):
    task, _ = parser(ENCODERS["pt"])
    for heads in ((1, 0, 1, 1), (ROOT, ROOT, 1, 1)):
        bad = replace(GOLD, heads=heads, path="a.conllu", line=7, id="s-3")
        with (
            refused("a.conllu:", "s-3", "word 1", "'she'")
            if heads[0] == 1
            else refused("a.conllu:8", "s-3", "word 2", "'sees'")
        ):
            task.encode([bad])
    task.skips_bad_sentences = True
    assert len(task.encode([GOLD, bad])) == 1
    assert "1 sentence" in task.warnings()[0]
    many, _ = parser(ENCODERS["pt"], single_root=False)
    assert len(many.encode([bad])) == 1


def test_data_that_a_parser_cannot_learn_from():
    with refused("heads"):
        parser(ENCODERS["pt"], train=(Sentence(WORDS, GOLD.columns, None),))
    with refused("task.tags", "'xpos'", "deprel, upos"):
        parser(ENCODERS["pt"], tags=("xpos",))


@pytest.mark.parametrize(
    ("named", "task", "encoder"),
    [
        ("task.channel", {"channel": 2}, {}),
        ("task.tags", {"tags": ["deprel"]}, {}),
        ("task.tags", {"tags": ["upos", "upos"]}, {}),
        ("encoder.arc_labels.channel", {}, {"arc_labels": {"channel": 1}}),
        ("encoder.globals.mode", {}, {"globals": {"mode": "all-dep"}}),
        ("encoder.inference.normaliser_h", {}, {"inference": {"normaliser_h": "relu"}}),
        ("encoder.inference.step_h", {}, {"inference": {"step_h": 0.5}}),
        (
            "task.single_root",
            {"single_root": False},
            {"inference": {"heads": "tree"}},
        ),
    ],
)
def test_settings_that_do_not_fit_a_parser(named, task, encoder):
    values = {"task": {"kind": "parsing", **task}, "data": {"kind": "builtin"}}
    with refused(named):
        from_dict(RunSettings, {**values, "encoder": {"kind": "pt", "channels": 2, **encoder}})


def test_a_parser_needs_whole_words():
    values = {"task": {"kind": "parsing"}, "data": {"kind": "builtin"}, "encoder": {"kind": "pt"}}
    with refused("vocabulary.kind", "subwords"):
        from_dict(RunSettings, {**values, "vocabulary": {"kind": "subwords", "size": 400}})


@pytest.mark.parametrize("decoder", ["tree", "mbr"])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_predictions_are_trees_with_probabilities(encoder, decoder):
    task, model = parser(ENCODERS[encoder], decoder=decoder, tags=("upos",))
    batch = batch_of(
        task,
        GOLD,
        replace(
            GOLD,
            words=WORDS[:2],
            heads=None,
            columns={name: values[:2] for name, values in GOLD.columns.items()},
        ),
    )
    output = run(model, task, batch)
    first, second = task.parses(output, batch.mask)
    assert [len(x.heads) for x in (first, second)] == [4, 2]
    for parse in (first, second):
        assert [*parse.heads].count(ROOT) == 1
        assert all(0 <= p <= 1 for p in (*parse.head_probabilities, *parse.label_probabilities))
        assert set(parse.tags) == set(parse.tag_probabilities) == {"upos"}
    marginals = task.arcs(output, batch.mask).marginals()
    head = first.heads[0]
    assert first.head_probabilities[0] == pytest.approx(marginals[0, 0, head].item())
    (alone,) = task.parses(output.sentence(1, 2), batch.mask[1:, :2])
    assert alone.heads == second.heads
    assert alone.head_probabilities == pytest.approx(second.head_probabilities)


def test_given_heads_are_kept():
    task, model = parser(ENCODERS["tree"])
    batch = batch_of(task, GOLD)
    output = run(model, task, batch)
    for heads in ((ROOT, 0, 1, 2), (1, 2, 3, ROOT)):
        (parse,) = task.parses(output, batch.mask, torch.tensor([heads]))
        assert tuple(parse.heads) == heads
        assert parse.head_probabilities == pytest.approx([1.0] * 4)


def parsing(encoder, **training):
    given = settings("tagging", encoder, size=120, **training)
    return replace(given, task=ParsingSettings(tags=("upos",)))


@pytest.mark.parametrize("encoder", [PT, TRANSFORMER], ids=["pt", "transformer"])
def test_a_run_is_trained_saved_loaded_and_resumed(encoder, tmp_path):
    given = parsing(encoder, epochs=1)
    training = ready(given, tmp_path / "run")
    results = training.train()
    loaded = load_run(tmp_path / "run")
    assert loaded.task.labels.names == training.run.task.labels.names
    words = [["the", "dogs", "sleep", "."]]
    (answer,) = predict(loaded, words)
    assert predict(training.run, words) == [answer]
    assert len(answer["heads"]) == len(answer["labels"]) == 4
    assert loaded.task.as_text(answer).count(" ") == 3
    found = evaluate(loaded.model, loaded.task, training.splits["dev"], training.accelerator)
    assert found == results["dev"]
    more = replace(given, training=replace(given.training, epochs=2))
    ready(more, tmp_path / "run", resume=True).train()
    ready(parsing(encoder, epochs=2), tmp_path / "whole").train()
    assert_same_runs(tmp_path / "whole", tmp_path / "run")


def test_a_sentence_of_159_words():
    task, model = parser(ENCODERS["tree"])
    heads = (ROOT, *range(158))
    long = Sentence(("dog",) * 159, {"deprel": ("root", *["det"] * 158)}, heads)
    batch = batch_of(task, long)
    output = run(model, task, batch)
    assert torch.isfinite(task.loss(output, batch))
    (parse,) = task.parses(output, batch.mask)
    assert len(parse.heads) == 159


PARTIAL = """
# sent_id = one
1\tshe\tshe\tPRON\t_\t_\t_\t_\t_\t_
2\tsees\tsee\tVERB\t_\t_\t0\troot\t_\t_
"""


def test_partial_heads_of_a_file_are_learned_from(tmp_path):
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.conllu").write_text(PARTIAL, encoding="utf-8")
    files = {name: f"{name}.conllu" for name in ("train", "dev", "test")}
    data = FileData(folder=str(tmp_path), format="conllu", **files)
    given = replace(parsing(PT, epochs=1), data=data, vocabulary=VocabularySettings())
    training = ready(given, tmp_path / "run")
    assert np.asarray(training.splits["train"].fields["gold_head"]).tolist() == [UNOBSERVED, ROOT]
    assert 0 <= training.train()["dev"]["las"] <= 1


@pytest.mark.long
def test_a_fifth_of_the_heads_gives_nearly_the_scores_of_all(tmp_path):
    """At least 95 % of the fully supervised UAS."""
    scores = {}
    for share in (1.0, 0.2):
        given = from_dict(
            RunSettings,
            {
                "task": {"kind": "parsing"},
                "data": {"kind": "builtin", "size": 1000},
                "encoder": {**PT, "labels": 48, "channels": 3, "dropout": 0.1}
                | {"potential": {"kind": "rotary", "rank": 16}}
                | {"inference": {"iterations": 2, "heads": ["tree", "independent", "independent"]}},
                "training": {"epochs": 8, "batch": 16, "learning_rate": 1e-2}
                | {"schedule": {"kind": "cosine"}},
            },
        )
        training = ready(given, tmp_path / str(share))
        known = training.splits["train"].fields["head"]
        draws = np.random.default_rng(0).random(len(known))
        training.splits["train"].fields["head"] = np.where(draws < share, known, -100)
        scores[share] = training.train()["test"]["uas"]
    assert scores[0.2] >= 0.95 * scores[1.0], scores
