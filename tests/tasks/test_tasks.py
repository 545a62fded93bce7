"""What each task asks, and how it counts: against counts done by hand, and oracles."""

import random
from collections import defaultdict
from itertools import product
from types import SimpleNamespace

import pytest
import torch
from seqeval.metrics import f1_score
from seqeval.scheme import IOBES
from torch import nn

from helpers.messages import check_wording, refused
from probformer.config import (
    ClassificationSettings,
    CogsSettings,
    EncoderSettings,
    NERSettings,
    TransformerSettings,
    UVSettings,
)
from probformer.crf.posterior import Posterior
from probformer.data.sentence import Sentence
from probformer.data.vocabulary import Vocabulary
from probformer.models.encoder import Encoder
from probformer.models.readout import Output, Pointer, project, word_readout
from probformer.models.transformer import Transformer
from probformer.tasks import build_task
from probformer.tasks.labels import IGNORE, Labels
from probformer.tasks.task import sentence_losses


def logits_of(numbers, classes):
    """Scores whose largest is at the numbers given."""
    return nn.functional.one_hot(torch.tensor(numbers), classes).float() * 10


def output_of(readout, *shape):
    """The output of a model whose read-out gives what it gives, whatever the representation is."""
    vectors = torch.zeros(*shape, 1)
    return Output(vectors, Posterior(vectors), readout)


def figures(task, *batches):
    """Metrics of the (read-out, batch) pairs, as evaluation adds them up."""
    total = defaultdict(float)
    for readout, batch in batches:
        for name, value in task.count(output_of(readout, *batch.words.shape), batch).items():
            total[name] += float(value)
    return task.metrics(total)


def test_labels_number_names_and_remember_unseen_ones():
    labels = Labels(["b", "a", "b"])
    assert [labels.number(x) for x in "ba"] == [0, 1]
    unseen = [labels.number(x) for x in ("z", "y", "z")]
    assert unseen[0] == unseen[2] < IGNORE
    assert unseen[1] < unseen[0]
    assert [labels.name(x) for x in (0, 1, *unseen)] == ["b", "a", "z", "y", "z"]
    (warning,) = labels.take_warnings("tags")
    check_wording(warning, "tags", "'z' (2)", "'y' (1)")
    assert labels.take_warnings("tags") == []


# Named entities


def ner(sentences):
    vocabulary = Vocabulary.from_sentences([s.words for s in sentences])
    task = build_task(NERSettings(), vocabulary)
    task.learn_classes(sentences)
    return task


def entities(*tags, line=1):
    words = tuple(f"w{i}" for i in range(len(tags)))
    return Sentence(words, {"entity": tags}, path="file", line=line)


def test_entities_are_bioes_inside():
    iob1 = [entities("I-X", "I-X", "B-X", "O", "I-Y")]
    iob2 = [entities("B-X", "I-X", "B-X", "O", "B-Y")]
    expected = ["B-X", "E-X", "S-X", "O", "S-Y"]
    for sentences in (iob1, iob2, [entities(*expected)]):
        task = ner(sentences)
        assert task.tags.names == sorted(expected)
        batch = task.evaluation_batch(task.encode(sentences), [0])
        assert [task.tags.name(n) for n in batch.targets["tag"][0].tolist()] == expected


def test_mixed_schemes_are_refused_with_file_and_line():
    with refused("file:6", "'I-X'"):
        ner([entities("B-X", "I-X"), entities("O", "I-X", line=5)])


def test_f1_is_that_of_seqeval():
    """Random predictions, ill-formed ones among them, over sentences of several batches."""
    choose = random.Random(0)
    tags = ["O", *(f"{p}-{kind}" for p in "BIES" for kind in ("X", "Y"))]
    spans = [["O"], ["S-X"], ["S-Y"], ["B-X", "E-X"], ["B-Y", "I-Y", "E-Y"]]
    gold = [[t for s in choose.choices(spans, k=5) for t in s] for _ in range(40)]
    guess = [[t if choose.random() < 0.7 else choose.choice(tags) for t in s] for s in gold]
    sentences = [entities(*tags) for tags in gold]
    task = ner([*sentences, entities(*(tag for span in spans for tag in span))])
    task.tags = Labels(tags)
    split = task.encode(sentences)
    pairs = []
    for start in (0, 25):
        rows = range(start, 25 if start == 0 else 40)
        batch = task.evaluation_batch(split, rows)
        width = batch.words.shape[1]
        numbers = [[*map(task.tags.number, guess[i])] for i in rows]
        padded = [row + [0] * (width - len(row)) for row in numbers]
        pairs.append((lambda _, padded=padded: logits_of(padded, len(tags)), batch))
    found = figures(task, *pairs)
    assert found["f1"] == pytest.approx(f1_score(gold, guess), abs=1e-12)
    strict = f1_score(gold, guess, mode="strict", scheme=IOBES)
    assert found["strict f1"] == pytest.approx(strict, abs=1e-12)
    assert found["strict f1"] != found["f1"]
    assert found["score"] == round(found["f1"], 4)
    assert found["voted f1"] not in (found["f1"], found["strict f1"])
    task.metric = "voted f1"
    assert figures(task, *pairs)["score"] == round(found["voted f1"], 4)


def test_an_entity_of_a_kind_that_training_does_not_have_is_missed():
    task = ner([entities("B-X", "I-X", "O")])
    split = task.encode([entities("B-X", "I-X", "O"), entities("B-NEW", "I-NEW", "O")])
    assert "'B-NEW' (1)" in task.warnings()[0]
    batch = task.evaluation_batch(split, [0, 1])
    right = [[*map(task.tags.number, ("B-X", "E-X", "O"))]] * 2
    found = figures(task, (lambda _: logits_of(right, 3), batch))
    assert found["f1"] == pytest.approx(2 * 1 / (2 + 2))


def test_entities_are_shown_in_brackets():
    task = ner([entities("B-X", "I-X", "O", "B-Y", "O")])
    numbers = [[*map(task.tags.number, ("B-X", "E-X", "O", "S-Y", "O"))]]
    output = output_of(lambda _: logits_of(numbers, len(task.tags))[0], 1, 5)
    words = ["New", "York", "likes", "Ann", "."]
    answer = task.answer(output, words, [0, 1, 2, 3, 4])
    assert answer["entities"] == [
        {"start": 0, "end": 2, "kind": "X", "text": "New York"},
        {"start": 3, "end": 4, "kind": "Y", "text": "Ann"},
    ]
    assert task.as_text(answer) == "[New York X] likes [Ann Y] ."


# Classification


def labelled(*labels):
    return [Sentence(("a", "b")[: 1 + n % 2], label=label, path="file", line=n + 1)
            for n, label in enumerate(labels)]  # fmt: skip


def classifier(sentences):
    task = build_task(ClassificationSettings(), Vocabulary.from_sentences([["a", "b"]]))
    task.learn_classes(sentences)
    return task


def test_a_sentence_has_one_label():
    task = classifier(labelled("good", "bad", "good"))
    batch = task.evaluation_batch(task.encode(labelled("good", "bad", "good")), [0, 1, 2])
    assert batch.targets["label"].tolist() == [1, 0, 1]
    found = figures(task, (lambda _: logits_of([1, 1, 1], 2), batch))
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["loss"] == pytest.approx(10 / 3, abs=1e-3)


def test_classes_are_learned_by_the_mean_over_sentences():
    task = classifier(labelled("good", "bad", "good"))
    batch = task.evaluation_batch(task.encode(labelled("good", "bad", "good")), [0, 1, 2])
    output = output_of(lambda _: logits_of([1, 1, 1], 2), 3)
    assert task.loss(output, batch).item() == pytest.approx(10 / 3, abs=1e-3)
    torch.manual_seed(0)
    readout = task.build_readout(SimpleNamespace(width=600))
    assert readout.weight.abs().max().item() == pytest.approx((6 / 602) ** 0.5, rel=0.01)  # Xavier
    with refused("good"):
        classifier(labelled("good", "good"))


def test_a_label_outside_the_set_is_refused_with_file_and_line():
    task = classifier(labelled("good", "bad"))
    with refused("file:2", "'so so'", "bad, good"):
        task.encode(labelled("good", "so so"))
    with refused("file:1", "label"):
        classifier(labelled(None))


def test_cls_is_in_front_and_reads_the_whole_sentence():
    settings = TransformerSettings(
        width=8, layers=2, heads=2, head_width=4, feed_forward=16, max_length=6, readout="cls"
    )
    torch.manual_seed(0)
    model = Transformer(10, settings).eval()
    words = torch.tensor([[1, 2, 3, 0], [4, 5, 6, 7]])
    mask = torch.tensor([[True] * 3 + [False], [True] * 4])
    posterior = model(words, mask, trace=True)
    found = model.representation(posterior)
    assert found.shape == (2, 8)
    assert posterior.z_scores.shape == (2, 4, 8)
    assert posterior.head_marginals.shape == (2, 2, 4, 4)
    total = posterior.head_marginals.sum(-1) + posterior.root_head_marginals
    torch.testing.assert_close(total, mask[:, None].expand(2, 2, 4).float())
    alone = model.representation(model(words[:1, :3], mask[:1, :3]))
    torch.testing.assert_close(alone, found[:1])
    for position in range(3):  # every word counts, and where it stands
        changed = words.clone()
        changed[0, position] = 9
        assert not torch.allclose(model.representation(model(changed, mask))[0], found[0])
    swapped = words[:, [1, 0, 2, 3]]
    assert not torch.allclose(model.representation(model(swapped, mask))[0], found[0])
    with refused("5", "6 words"):
        model(torch.zeros(1, 6, dtype=torch.long), torch.ones(1, 6, dtype=torch.bool))


# COGS

CATS = [
    ("A cat liked Emma .", "cat ( x _ 1 ) AND like . agent ( x _ 2 , x _ 1 ) AND "
     "like . theme ( x _ 2 , Emma )"),
    ("Emma liked the cat .", "* cat ( x _ 3 ) ; like . agent ( x _ 1 , Emma ) AND "
     "like . theme ( x _ 1 , x _ 3 )"),
]  # fmt: skip


def meanings(*pairs, case="in_distribution"):
    return [
        Sentence(tuple(text.split()), label=case, logical_form=form, path="file", line=n + 1)
        for n, (text, form) in enumerate(pairs)
    ]


def cogs(sentences, **settings):
    vocabulary = Vocabulary.from_sentences([s.words for s in sentences])
    task = build_task(CogsSettings(**settings), vocabulary)
    task.learn_classes(sentences)
    return task


@pytest.mark.parametrize(
    ("settings", "parents"),
    [
        ({"parent": "relative"}, ["none", "1", "none", "-1", "none"]),
        ({"parent": "relative", "none_as_previous": True}, ["-1", "1", "-1", "-1", "-1"]),
        ({"parent": "absolute"}, ["none", "2", "none", "2", "none"]),
    ],
)
def test_parents_are_classes(settings, parents):
    sentences = meanings(*CATS)
    task = cogs(sentences, **settings)
    batch = task.evaluation_batch(task.encode(sentences), [0])
    assert [task.labels["parent"].name(n) for n in batch.targets["parent"][0].tolist()] == parents


@pytest.mark.parametrize("parent", ["attention", "relative-attention"])
def test_parents_may_be_pointed_at(parent):
    sentences = meanings(*CATS)
    task = cogs(sentences, parent=parent)
    batch = task.evaluation_batch(task.encode(sentences), [0, 1])
    assert batch.targets["parent"].tolist() == [[0, 3, 0, 3, 0], [2, 0, 0, 2, 0]]


def readout_saying(task, batch, **changed):
    """A read-out that gives the gold tags, but for some."""
    numbers = {name: batch.targets[name].clamp(min=0).clone() for name in task.labels}
    for name, (row, word, number) in changed.items():
        numbers[name][row, word] = number
    sizes = {name: len(labels) for name, labels in task.labels.items()}
    sizes["parent"] = max(sizes["parent"], 1 + batch.words.shape[1])
    logits = {n: logits_of(values.tolist(), sizes[n]) for n, values in numbers.items()}
    return lambda vectors, mask: logits


@pytest.mark.parametrize("parent", ["relative", "absolute", "attention", "relative-attention"])
def test_sentences_are_right_or_wrong_as_a_whole(parent):
    sentences = meanings(*CATS) + meanings(CATS[1], case="a case")
    task = cogs(sentences, parent=parent)
    batch = task.evaluation_batch(task.encode(sentences), [0, 1, 2])
    found = figures(task, (readout_saying(task, batch), batch))
    assert (found["accuracy"], found["exact match"]) == (1, 1)
    # A wrong category that the form does not use: the form is right all the same.
    verb = task.labels["category"].number("")
    found = figures(task, (readout_saying(task, batch, category=(0, 2, verb)), batch))
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["exact match"] == 1
    agent = task.labels["role"].number("agent")
    found = figures(task, (readout_saying(task, batch, role=(2, 3, agent)), batch))
    assert found["accuracy"] == found["exact match"] == pytest.approx(2 / 3)
    assert found["accuracy/in_distribution"] == 1
    assert found["accuracy/a case"] == 0


def test_a_distance_that_training_does_not_have_is_wrong():
    task = cogs(meanings(*CATS))
    far = ("Emma liked the old old cat .", CATS[1][1].replace("x _ 3", "x _ 5"))
    split = task.encode(meanings(far))
    (warning,) = task.warnings()
    check_wording(warning, "parent", "'-4' (1)")
    batch = task.evaluation_batch(split, [0])
    found = figures(task, (readout_saying(task, batch), batch))
    assert found["accuracy"] == found["exact match"] == 0


def test_the_five_losses_add_up_and_padding_is_not_asked():
    long, short = meanings(*CATS, ("Emma slept .", "sleep . agent ( x _ 1 , Emma )"))[1:]
    task = cogs([long, short])
    batch = task.evaluation_batch(task.encode([long, short]), [0, 1])
    readout = readout_saying(task, batch)
    alone = {
        kind: sentence_losses(logits, batch.targets[kind]).mean().item()
        for kind, logits in readout(None, None).items()
    }
    loss = task.loss(output_of(readout, *batch.words.shape), batch)
    assert loss.item() == pytest.approx(sum(alone.values()), rel=1e-5)
    found = figures(task, (readout, batch))
    assert found["accuracy"] == 1  # of the short one, though it is padded
    assert "accuracy/in_distribution" not in found


def test_unseen_classes_stay_in_the_mean():
    logits = torch.tensor([[[0.0, 0.0], [0.0, 0.0]]])
    unseen = Labels(["a", "b"]).number("z")
    loss = sentence_losses(logits, torch.tensor([[0, unseen]]))
    assert loss.item() == pytest.approx(0.5 * 0.6931, abs=1e-3)


def test_unknown_names_are_different_words():
    said = ("Emma said that Liam slept .", "say . agent ( x _ 1 , Emma ) AND "
            "say . ccomp ( x _ 1 , x _ 4 ) AND sleep . agent ( x _ 4 , Liam )")  # fmt: skip
    task = cogs(meanings(said, CATS[0]))
    task.vocabulary = Vocabulary.from_sentences([["said", "that", "slept", "."]])
    batch = task.evaluation_batch(task.encode(meanings(said)), [0])
    swapped = task.labels["parent"]
    logits = readout_saying(task, batch)(None, None)
    one, minus = swapped.number("1"), swapped.number("none")
    numbers = batch.targets["parent"].clone()
    numbers[0, 0], numbers[0, 3] = minus, one
    logits["parent"] = logits_of(numbers.tolist(), logits["parent"].shape[-1])
    found = figures(task, (lambda vectors, mask: logits, batch))
    assert found["exact match"] == 0


@pytest.mark.parametrize("task", ["ner", "classification", "cogs"])
def test_wrong_annotation_is_left_out_where_that_was_asked(task):
    good = {
        "ner": [entities("B-X", "I-X")],
        "classification": labelled("a", "b"),
        "cogs": meanings(*CATS),
    }[task]
    bad = {
        "ner": entities("B-X", "?", line=7),
        "classification": Sentence(("a",), path="file", line=7),
        "cogs": Sentence(("A", "cat"), logical_form="cat", path="file", line=7),
    }[task]
    vocabulary = Vocabulary.from_sentences([s.words for s in [*good, bad]])
    built = build_task({"ner": NERSettings(), "classification": ClassificationSettings(),
                        "cogs": CogsSettings()}[task], vocabulary)  # fmt: skip
    built.skips_bad_sentences = True
    built.learn_classes([*good, bad])
    assert len(built.encode([*good, bad])) == len(good)
    (warning,) = built.warnings()
    check_wording(warning, "1 sentence", "file:")


def test_a_form_that_does_not_parse_is_refused_with_file_and_line():
    with refused("file:2"):
        cogs(meanings(CATS[0], ("A cat slept .", "cat ( x _ 1 ) AND sleep")))
    with refused("file:1", "logical form"):
        cogs(meanings(("A cat slept .", None)))


def test_the_answer_is_a_logical_form():
    sentences = meanings(*CATS)
    task = cogs(sentences)
    batch = task.evaluation_batch(task.encode(sentences), [1])
    output = output_of(readout_saying(task, batch), 1, 5)
    answer = task.answer(output, list(sentences[1].words), range(5))
    assert task.as_text(answer) == answer["logical_form"] == CATS[1][1]


@pytest.mark.parametrize("classes", [8, 13])
def test_more_classes_inside_change_nothing(classes):
    layer, x = nn.Linear(4, classes), torch.randn(2, 3, 4)
    weight = torch.randn(2, 3, classes)
    results = []
    for compute in (layer, lambda x: project(x, layer.weight, layer.bias, 8)):
        y = compute(x)
        gradients = torch.autograd.grad((y * weight).sum(), [*layer.parameters()])
        results.append((y, *gradients))
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("reach", [None, 1, 5])
def test_a_pointer_does_not_point_at_padding(reach):
    torch.manual_seed(0)
    pointer, x = Pointer(4, reach), torch.randn(2, 3, 4)
    mask = torch.tensor([[True, True, False], [True] * 3])
    scores = pointer(x, mask)
    assert scores.shape == (2, 3, 4)
    assert scores.softmax(-1)[0, :2, 3].eq(0).all()
    torch.testing.assert_close(pointer(x[:1, :2], mask[:1, :2]), scores[:1, :2, :3])


@pytest.mark.parametrize("reach", [0, 2, 9])
def test_a_pointer_sees_how_far_away_a_word_is(reach):
    torch.manual_seed(0)
    pointer, x = Pointer(4, reach), torch.randn(2, 6, 4)
    scores = pointer(x, torch.ones(2, 6, dtype=torch.bool))
    for sentence in range(2):
        for i, j in product(range(6), repeat=2):
            row = max(-reach, min(reach, j - i)) + reach
            one, other = x[sentence, i], x[sentence, j]
            expected = (pointer.words.weight @ one) @ other + pointer.distances.weight[row] @ one
            torch.testing.assert_close(scores[sentence, i, 1 + j], expected)


@pytest.mark.parametrize("mask", [0, 3, 6])
def test_words_guessed_by_their_own_scores(mask):
    encoder = Encoder(7, EncoderSettings(labels=4, channels=1, potential=UVSettings(rank=2)))
    readout, x = word_readout(encoder, mask, tied=True), torch.randn(2, 5, 4)
    nn.init.normal_(readout.bias)
    others = [word for word in range(7) if word != mask]
    expected = x @ encoder.word_scores.weight[others].mT + readout.bias
    torch.testing.assert_close(readout(x), expected)
    readout(x).sum().backward()
    assert [word for word in range(7) if encoder.word_scores.weight.grad[word].any()] == others
    assert "weight" not in readout.state_dict()
    assert "weight" in word_readout(encoder, mask).state_dict(), "as published"
