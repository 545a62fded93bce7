"""Training: the published protocol, resuming, learning, starting from another run."""

import json
import random
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from helpers.messages import check_wording, refused
from helpers.places import TESTS
from helpers.runs import LARGER, PT, TRANSFORMER, assert_same_runs, ready, settings
from probformer.config import CosineSchedule, PlateauSchedule, VocabularySettings
from probformer.data.batches import evaluation_batches, training_batches
from probformer.data.encoded import EncodedSplit
from probformer.data.randomness import Purpose, derive_seed, uniform
from probformer.data.sentence import Sentence
from probformer.data.vocabulary import Vocabulary
from probformer.runs.prediction import predict
from probformer.runs.run_folder import load_run, read_metrics
from probformer.tasks import build_task
from probformer.tasks.batch import Plan
from probformer.tasks.gold_heads import gold_head_loss
from probformer.tasks.labels import IGNORE
from probformer.tasks.tagging import Tagging
from probformer.training import checkpoints
from probformer.training.commands import train_one
from probformer.training.schedule import build_schedule


def test_the_first_steps_are_the_published_protocol(tmp_path):
    """A plain loop: masks, chunk means whose gradients add up, penalty, clipping, coupled Adam."""
    given = settings(chunk=5, penalty=5e-2, weight_decay=1e-2, clip=0.5)
    training = ready(given, tmp_path)
    task, split = training.run.task, training.splits["train"]
    model, encoder = training.model, training.model.encoder
    parameters = [p.detach().clone().requires_grad_() for p in model.parameters()]
    names = [name for name, _ in model.named_parameters()]
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in parameters]

    def forward(words, mask):
        replaced = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(model, replaced, (words, mask)).representation

    def dense_norm():
        U, V = (parameters[names.index(f"encoder.potentials.words.{x}")] for x in "UV")
        return (U.mT @ V).norm()

    order = np.arange(len(split))  # the first epoch is not shuffled
    for step in range(3):
        total = [torch.zeros_like(p) for p in parameters]
        for start in range(0, 16, 5):
            chunk = order[16 * step : 16 * step + 16][start : start + 5]
            losses = []
            for index in chunk:
                ids = split.fields["words"][split.offsets[index] : split.offsets[index + 1]]
                words = torch.tensor(np.array(ids), dtype=torch.long)
                where = np.arange(split.offsets[index], split.offsets[index + 1])
                masked = uniform(derive_seed(0, Purpose.MASKING, 0), where) < 0.3
                masked = torch.from_numpy(masked) & (words != 0)
                inputs = words.masked_fill(masked, task.vocabulary.mask)
                found = forward(inputs[None], torch.ones(1, len(words), dtype=torch.bool))
                weight, bias = (parameters[names.index(f"head.{x}")] for x in ("weight", "bias"))
                logits = found[0, masked] @ weight.T + bias
                losses += list(-logits.log_softmax(-1)[range(len(logits)), words[masked]])
            loss = torch.stack(losses).mean() + 5e-2 * dense_norm()
            for sum_, gradient in zip(total, torch.autograd.grad(loss, parameters), strict=True):
                sum_ += gradient
        norm = torch.stack([g.norm() for g in total]).norm()
        scale = min(1.0, 0.5 / (norm.item() + 1e-6))
        for p, g, (first, second) in zip(parameters, total, moments, strict=True):
            g = g * scale + 1e-2 * p.detach()  # coupled weight decay
            first.mul_(0.9).add_(g, alpha=0.1)
            second.mul_(0.999).addcmul_(g, g, value=0.001)
            corrected = first / (1 - 0.9 ** (step + 1))
            root = (second / (1 - 0.999 ** (step + 1))).sqrt() + 1e-9
            p.data -= 1e-2 * corrected / root
        training._update(order[16 * step : 16 * step + 16])
        training.progress.step += 1
        for name, ours, theirs in zip(names, model.parameters(), parameters, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6, msg=name)
    assert encoder.training


@pytest.mark.parametrize("task", ["mlm", "tagging"])
@pytest.mark.parametrize("encoder", [PT, TRANSFORMER], ids=["pt", "transformer"])
def test_a_run_folder_is_whole_and_loads(task, encoder, tmp_path):
    results = train_one(settings(task, encoder), tmp_path)
    names = {"config.json", "model.safetensors", "tokenizer.json", "run.toml", "metrics.jsonl"}
    assert {path.name for path in tmp_path.iterdir()} == names | {
        "environment.json",
        "README.md",
        "state",
    }
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["model_type"], config["format_version"]) == ("probformer", 1)
    lines = read_metrics(tmp_path)
    assert [line.get("epoch") for line in lines] == [1, 2, None]
    assert lines[-1]["final"] == results
    run = load_run(tmp_path)
    assert run.settings == settings(task, encoder)
    dev = min(lines[:2], key=lambda line: (-line["dev"]["score"], line["dev"]["loss"]))["dev"]
    assert results["dev"]["loss"] == pytest.approx(dev["loss"], rel=1e-6)


@pytest.mark.parametrize(("task", "extra"), [("mlm", 0.0), ("tagging", 0.9)])
def test_stopped_anywhere_and_resumed_a_run_ends_the_same(task, extra, tmp_path, monkeypatch):
    """Stopped after each of several batches, in a new object each time, as a new process would."""
    often = {"epochs": 3, "checkpoint_minutes": 0.0, "average": extra}
    given = settings(task, {**PT, "dropout": 0.2}, **often)
    given = replace(given, vocabulary=VocabularySettings(word_dropout=extra))
    train_one(given, tmp_path / "whole")
    stops = iter([1, 3, 2, 4, 1, 5])
    folder, resume = tmp_path / "stopped", False
    for stop in stops:
        training = ready(given, folder, resume)
        updates = []

        def update(indices, training=training, updates=updates, stop=stop):
            if len(updates) == stop:
                raise KeyboardInterrupt
            updates.append(None)
            type(training)._update(training, indices)

        monkeypatch.setattr(training, "_update", update)
        try:
            training.train()
            break
        except KeyboardInterrupt:
            resume = (folder / "state").exists()
            if not resume:
                shutil.rmtree(folder)
    ready(given, folder, resume=True).train()
    assert_same_runs(tmp_path / "whole", folder)


def test_a_damaged_checkpoint_is_noticed_and_the_one_before_taken(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(checkpoints, "_QUICK", 60)  # one after each epoch, on a busy machine too
    given = settings(epochs=3)
    train_one(given, tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "damaged")
    last = sorted((tmp_path / "damaged/state").iterdir())[-1]
    weights = last / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-20])
    training = ready(given, tmp_path / "damaged", resume=True)
    assert training.progress.epoch == 2
    check_wording(capsys.readouterr().err, str(last))
    training.train()
    assert_same_runs(tmp_path / "whole", tmp_path / "damaged")


@pytest.mark.parametrize(("took", "expected"), [(0.1, [0, 1, 2, 3]), (0.3, [0, 3])])
def test_epochs_shorter_than_a_checkpoint_share_one(took, expected, tmp_path, monkeypatch):
    """As if time passed only while one is made; killed in between, a run ends the same."""
    now, saved, save = 0.0, [], checkpoints.save_checkpoint

    def slow(folder, progress, *arguments, **others):
        nonlocal now
        now += took
        saved.append(progress.epoch)
        save(folder, progress, *arguments, **others)

    monkeypatch.setattr(checkpoints, "save_checkpoint", slow)
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: now)
    given = settings(epochs=3)
    train_one(given, tmp_path / "whole")
    assert saved == expected

    class Killed(Exception):
        pass

    def die(line):
        if line["epoch"] == 2:
            raise Killed

    training = ready(given, tmp_path / "killed", after_epoch=die)
    with pytest.raises(Killed):
        training.train()
    again = ready(given, tmp_path / "killed", resume=True)
    assert again.progress.epoch == expected[-2]
    again.train()
    assert_same_runs(tmp_path / "whole", tmp_path / "killed")


def test_starting_from_another_run_is_ahead_of_scratch(tmp_path, capsys):
    """A tagger with little data, after masked language modelling on more of it."""
    train_one(settings(encoder=LARGER, size=1000, epochs=8), tmp_path / "mlm")
    tagger = settings("tagging", LARGER, size=100, epochs=4)
    scratch = train_one(tagger, tmp_path / "scratch")
    tuned = train_one(tagger, tmp_path / "tuned", init=tmp_path / "mlm")
    assert tuned["dev"]["loss"] < scratch["dev"]["loss"]
    assert "words matched" in capsys.readouterr().out


def test_gold_heads_are_learned(tmp_path):
    heads = {"channel": 1, "weight": 1.0}
    given = settings("tagging", size=300, epochs=4, gold_heads=heads)
    training = ready(given, tmp_path)
    plan = Plan(lowest_head=0)
    batch = training.run.task.evaluation_batch(training.splits["dev"], range(30), plan)

    def loss(channel):
        with torch.no_grad():
            output = training.model.eval()(batch.words, batch.mask, attention=True)
        return gold_head_loss(output.posterior, batch, channel).item()

    before = loss(1)
    training.train()
    assert loss(1) < 0.6 * before
    assert loss(0) > loss(1)


def test_evaluation_masks_are_the_authors():
    """Random(313), a draw a word in corpus order, for unknown words too; never <unk>."""
    sentences = [["a", "b", "c"], ["d", "a"], ["b", "zzz", "a", "c"]] * 20
    vocabulary = Vocabulary.from_sentences([["a", "b", "c", "d"]])
    task = build_task(settings().task, vocabulary)
    split = task.encode(Sentence(tuple(words)) for words in sentences)
    batch = task.evaluation_batch(split, range(len(split)))
    stream, expected = random.Random(313), []
    for b, words in enumerate(sentences):
        for i, word in enumerate(words):
            masked = stream.random() < 0.3 and word != "zzz"
            assert (batch.words[b, i] == vocabulary.mask).item() == masked
            if masked:
                expected.append((4 * b + i, vocabulary.id_of(word)))
    positions, targets = batch.target_positions.tolist(), batch.targets["word"].tolist()
    assert [*zip(positions, targets, strict=True)] == expected


def test_training_masks_change_with_the_epoch():
    vocabulary = Vocabulary.from_sentences([["a", "b"]])
    task = build_task(settings().task, vocabulary)
    split = task.encode([Sentence(("a", "b") * 500)])
    first, again, other = (
        task.training_batch(split, [0], epoch, 0).words == vocabulary.mask for epoch in (0, 0, 1)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first.float().mean().item() == pytest.approx(0.3, abs=0.05)


def test_a_tag_that_training_does_not_know_is_wrong():
    vocabulary = Vocabulary.from_sentences([["a", "b"]])
    task = build_task(settings("tagging").task, vocabulary)
    task.learn_classes([Sentence(("a", "b"), {"xpos": ("X", "Y")})])
    split = task.encode([Sentence(("a", "b"), {"xpos": ("X", "NEW")})])
    targets = task.evaluation_batch(split, [0]).targets["tag"]
    assert targets[0, 0] == 0
    assert task.tags.name(int(targets[0, 1])) == "NEW"
    (warning,) = task.warnings()
    check_wording(warning, "tags", "'NEW' (1)")
    assert task.warnings() == []


def test_subwords_are_tagged_at_their_first_piece():
    vocabulary = Vocabulary.from_subwords([["walking", "walk"]] * 5, 260)
    task = build_task(settings("tagging").task, vocabulary)
    sentence = Sentence(("walking", "walk"), {"xpos": ("X", "Y")})
    task.learn_classes([sentence])
    ids, word_of = vocabulary.encode(sentence.words)
    targets = task.fields_of(sentence, word_of)["tag"]
    assert len(targets) == len(ids) > 2
    assert [t for t in targets if t != IGNORE] == [0, 1]
    assert targets[word_of.index(1)] == 1


def test_encoded_splits_and_batches():
    rows = [{"words": [1, 2, 3]}, {"words": [4]}, {"words": [5, 6]}]
    split = EncodedSplit(rows)
    tokens = split.gather([2, 0])
    assert tokens["words"].tolist() == [5, 6, 1, 2, 3]
    assert tokens.positions.tolist() == [4, 5, 0, 1, 2]
    assert tokens.sentences.tolist() == [0, 0, 1, 1, 1]
    assert tokens.lengths.tolist() == [2, 3]
    lengths = np.array([3, 9, 1, 4, 4, 20])
    first = training_batches(lengths, 4, 0, 0, by_length=False)
    assert [b.tolist() for b in first] == [[0, 1, 2, 3], [4, 5]]
    for epoch in (1, 2):
        batches = training_batches(lengths, 4, epoch, 0, by_length=epoch == 2)
        assert sorted(np.concatenate(batches).tolist()) == [*range(6)]
    batches = evaluation_batches(lengths, tokens=12)
    assert sorted(np.concatenate(batches).tolist()) == [*range(6)]
    for batch in batches:
        assert len(batch) == 1 or len(batch) * lengths[batch].max() <= 12


def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_the_checkpoint(tmp_path):
    training = ready(settings(), tmp_path)
    training._epoch()
    training._end_epoch()
    before = sorted((tmp_path / "state").iterdir())
    training.model.readout.bias.data.fill_(float("nan"))
    with refused("loss", "epoch 2, batch 1"):
        training._epoch()
    assert sorted((tmp_path / "state").iterdir()) == before


FIRST_FORMAT = {  # what the version that wrote the run answered: the best tag and log P of it
    "they plan to visit her .": (
        "NNP NNP NNP . . TO",
        [-2.14215, -1.57254, -2.17639, -1.95911, -1.74989, -2.31096],
    ),
    "did Alice watch the dogs ?": (
        "NNP NNP NNP . . .",
        [-2.24398, -1.79126, -1.82476, -2.02817, -2.23013, -2.33503],
    ),
}


@pytest.mark.parametrize("text", FIRST_FORMAT)
def test_a_run_of_the_first_format_still_loads_and_answers(text):
    """Written once by the first version that could, and never again."""
    folder = TESTS / "fixtures/run-v1"
    run, words = load_run(folder), text.split()
    tags, logs = FIRST_FORMAT[text]
    assert predict(run, [words]) == [{"words": words, "tags": tags.split()}]
    tokens = torch.tensor([run.vocabulary.encode(words).ids])
    output = run.model(tokens, torch.ones_like(tokens, dtype=torch.bool))
    best = output.readout(output.representation)[0].log_softmax(-1).max(-1).values
    torch.testing.assert_close(best, torch.tensor(logs), atol=1e-4, rtol=0)
    assert read_metrics(folder)[-1]["final"]["test"]["accuracy"] > 0


def test_curves_for_tensorboard(tmp_path):
    train_one(settings(tensorboard=True), tmp_path)
    (events,) = (tmp_path / "tensorboard").iterdir()
    accumulator = EventAccumulator(str(events))
    accumulator.Reload()
    losses = [event.value for event in accumulator.Scalars("train/loss")]
    expected = [line["train_loss"] for line in read_metrics(tmp_path)[:2]]
    assert losses == pytest.approx(expected, rel=1e-5)


def test_bfloat16_by_length_and_cosine(tmp_path):
    given = settings(
        size=200, epochs=3, precision="bf16", by_length=True, schedule={"kind": "cosine"}
    )
    train_one(given, tmp_path)
    losses = [line["train_loss"] for line in read_metrics(tmp_path)[:3]]
    assert losses[2] < losses[0]


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_epochs_are_judged_as_they_are_trained_and_final_figures_are_exact(
    precision, tmp_path, monkeypatch
):
    seen, count = [], Tagging.count

    def look(*arguments):
        half, tf32 = torch.is_autocast_enabled("cpu"), torch.backends.cuda.matmul.allow_tf32
        seen.append("bf16" if half else "tf32" if tf32 else "fp32")
        return count(*arguments)

    monkeypatch.setattr(Tagging, "count", look)
    training = ready(settings("tagging", epochs=1, precision=precision), tmp_path)
    training.train()
    batches = len(evaluation_batches(training.splits["dev"].lengths, 4096))
    assert seen[:batches] == [precision] * batches
    assert len(seen) > batches
    assert {*seen[batches:]} == {"fp32"}


def test_the_reported_loss_is_the_mean_over_chunks(tmp_path):
    training = ready(settings(chunk=4), tmp_path)
    batch_loss = training.batch_loss
    single = [batch_loss(training.batches.build([np.arange(i, i + 4)], 0)) for i in (0, 4, 8, 12)]
    expected = sum(loss.item() for loss in single)
    training._update(np.arange(16))
    assert training.progress.loss == pytest.approx(expected, rel=1e-5)
    assert training.progress.chunks == 4


def test_of_two_equal_scores_the_lower_loss_is_better(tmp_path, monkeypatch):
    training = ready(settings(epochs=3), tmp_path)
    losses = iter([0.5, 0.4, 0.6])

    def judged(*_):
        return {"loss": next(losses), "score": 0.9, "perplexity": 1.0}

    monkeypatch.setattr("probformer.training.loop.evaluate", judged)
    for _ in range(3):
        training._epoch()
        training._end_epoch()
    assert training.progress.best["epoch"] == 2


def test_schedules():
    plateau = build_schedule(PlateauSchedule(patience=1), 1.0, 10)
    for score, loss, rate in [(0.5, 1.0, 1), (0.5, 0.9, 1), (0.5, 0.9, 1), (0.4, 0.1, 0.5)]:
        plateau.epoch_ended({"score": score, "loss": loss})
        assert plateau.rate(0) == rate
    again = build_schedule(PlateauSchedule(patience=1), 1.0, 10)
    again.load_state(json.loads(json.dumps(plateau.state())))
    assert again.state() == plateau.state()
    cosine = build_schedule(CosineSchedule(warm_up=0.2), 1.0, 10)
    assert [round(cosine.rate(step), 3) for step in (0, 1, 2, 6, 10)] == [0.5, 1.0, 1.0, 0.5, 0.0]
