"""The explorer without the web: what it says is what the model believes."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from helpers.runs import PT, TRANSFORMER, saved
from probformer.analysis.drawing import draw, owners
from probformer.analysis.reading import read_sentence
from probformer.config import VocabularySettings
from probformer.crf.evidence import Evidence
from probformer.crf.inference import mean_field
from probformer.errors import InputError
from probformer.runs.prediction import predict
from probformer.runs.run_folder import load_run
from probformer.sentinels import ROOT, UNOBSERVED
from probformer.web.encoding import as_json
from probformer.web.questions import DrawQuestion, InferQuestion
from probformer.web.service import Explorer, NotFound

ROOTED = {**PT, "root": {"labels": 5}}
SENTENCE = ["the", "dog", "sleeps", "."]
HALF_A_DIGIT = 0.5e-4 + 1e-7


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    base = tmp_path_factory.mktemp("runs")
    return {
        "mlm": saved(base / "mlm", "mlm"),
        "tagging": saved(base / "tagging", "tagging", ROOTED),
        "classification": saved(base / "classification", "classification"),
        "ner": saved(base / "ner", "ner"),
        "cogs": saved(base / "cogs", "cogs"),
        "transformer": saved(base / "transformer", "mlm", TRANSFORMER),
        "pieces": saved(
            base / "pieces", "tagging", vocabulary=VocabularySettings(kind="subwords", size=300)
        ),
    }


@pytest.fixture(scope="module")
def explorer(folders):
    return Explorer(list(folders.values()), Path("."))


def infer(explorer, run, *sentences, **clamps):
    """As it is told to others: through JSON."""
    question = InferQuestion(run=run, sentences=list(sentences), clamps=clamps)
    return json.loads(as_json(explorer.infer(question)))


def posterior_of(run, words, evidence=None):
    """By the loop of inference itself."""
    encoder = run.model.encoder
    ids = torch.tensor([[run.vocabulary.id_of(word) for word in words]])
    mask = torch.ones_like(ids, dtype=torch.bool)
    settings = encoder.settings.inference
    with torch.no_grad():
        unary = encoder.word_scores(ids)
        return mean_field(unary, mask, encoder.potentials, settings, evidence=evidence, trace=True)


def assert_tells(result, posterior):
    """All numbers of an answer are those of a posterior, rounded."""
    for t, step in enumerate(posterior.trace):
        np.testing.assert_allclose(result["heads"][t], step.head_marginals[0], atol=HALF_A_DIGIT)
        if step.root_head_marginals is not None:
            root = step.root_head_marginals[0]
            np.testing.assert_allclose(result["root"][t], root, atol=HALF_A_DIGIT)
        energy = float(step.free_energy[0])
        assert result["free_energy"][t] == pytest.approx(energy, abs=1e-4)
        for word, labels in enumerate(result["labels"][t]):
            best = step.z_marginals[0, word].topk(5)
            seen = best.values >= 0.5e-4  # what is more than nothing after rounding
            assert [label["label"] for label in labels] == best.indices[seen].tolist()
            found = [label["p"] for label in labels]
            np.testing.assert_allclose(found, best.values[seen], atol=HALF_A_DIGIT)
    assert len(result["heads"]) == len(posterior.trace)


def test_runs_are_described(explorer, folders):
    runs = {run["name"]: run for run in explorer.runs()["runs"]}
    assert list(runs) == list(folders)
    assert runs["tagging"] == {
        "name": "tagging",
        "model": "pt",
        "task": "tagging",
        "step": "iteration",
        "steps": 2,
        "channels": 2,
        "labels": 16,
        "has_root": True,
        "can_clamp": True,
        "example": runs["tagging"]["example"],
    }
    assert runs["transformer"]["model"] == "transformer"
    assert (runs["transformer"]["step"], runs["transformer"]["steps"]) == ("layer", 1)
    assert runs["transformer"]["labels"] is None
    assert not runs["transformer"]["can_clamp"]
    assert not runs["pieces"]["can_clamp"]
    for name, folder in folders.items():
        words = runs[name]["example"].split()
        assert load_run(folder).vocabulary.count_unknown(words) == 0


def test_names_are_those_of_folders_and_unique(folders):
    again = Explorer([folders["mlm"], folders["mlm"], folders["ner"] / ".." / "mlm"], Path("."))
    assert [run["name"] for run in again.runs()["runs"]] == ["mlm", "mlm-2", "mlm-3"]


@pytest.mark.parametrize("name", ["mlm", "tagging", "classification"])
def test_heads_and_labels_are_those_of_mean_field(explorer, folders, name):
    (result,) = infer(explorer, name, " ".join(SENTENCE))["results"]
    assert result["words"] == SENTENCE
    assert_tells(result, posterior_of(load_run(folders[name]), SENTENCE))
    assert (result["root"] is None) == (name == "mlm")


def test_attention_of_a_transformer(explorer, folders):
    answer = infer(explorer, "transformer", SENTENCE)
    (result,) = answer["results"]
    reading = read_sentence(load_run(folders["transformer"]), SENTENCE)
    np.testing.assert_allclose(result["heads"], reading.heads, atol=HALF_A_DIGIT)
    assert answer["step"] == "layer"
    assert result["labels"] is result["free_energy"] is result["root"] is None


@pytest.mark.parametrize(
    "name", ["mlm", "tagging", "classification", "ner", "cogs", "transformer", "pieces"]
)
def test_answers_are_those_of_predict(explorer, folders, name):
    sentences = [["the", "<mask>", "sleeps"], SENTENCE, ["<mask>", "<mask>"]]
    expected = predict(load_run(folders[name]), sentences)
    results = infer(explorer, name, *sentences)["results"]
    for result, answer in zip(results, expected, strict=True):
        assert {"words": result["words"], **result["answer"]} == json.loads(json.dumps(answer))


def test_a_batch_is_its_sentences_one_by_one(explorer):
    sentences = [SENTENCE, ["dogs"], ["the", "<mask>", "of", "the", "dog", "sleeps"]]
    together = infer(explorer, "tagging", *sentences)["results"]
    for sentence, result in zip(sentences, together, strict=True):
        (alone,) = infer(explorer, "tagging", sentence)["results"]
        assert (alone["words"], alone["answer"]) == (result["words"], result["answer"])
        np.testing.assert_allclose(alone["heads"], result["heads"], atol=1.01e-4)
        np.testing.assert_allclose(alone["root"], result["root"], atol=1.01e-4)


def test_unknown_words_are_named_by_their_places(explorer):
    (result,) = infer(explorer, "mlm", "the quokka <mask> <unk> zzz .")["results"]
    assert result["unknown"] == [1, 3, 4]


def test_clamps_are_evidence(explorer, folders):
    run = load_run(folders["tagging"])
    heads, labels = torch.full((1, 2, 4), UNOBSERVED), torch.full((1, 4), UNOBSERVED)
    heads[0, :, 0], heads[0, 1, 2], heads[0, 0, 3] = 2, ROOT, 1
    labels[0, 1] = 7
    (result,) = infer(
        explorer,
        "tagging",
        SENTENCE,
        heads=[
            {"word": 0, "head": 2},
            {"word": 2, "head": "root", "channel": 1},
            {"word": 3, "head": 1, "channel": 0},
        ],
        labels=[{"word": 1, "label": 7}],
    )["results"]
    assert_tells(result, posterior_of(run, SENTENCE, Evidence(labels=labels, heads=heads)))
    assert result["heads"][-1][0][0] == [0, 0, 1, 0]
    assert result["root"][-1][1][2] == 1
    assert result["labels"][0][1] == [{"label": 7, "p": 1}]


def test_the_answer_hears_of_clamps(explorer, folders):
    """Tags come from the clamped inference, not from another one."""
    run = load_run(folders["tagging"])
    labels = torch.tensor([[3, UNOBSERVED, 5, UNOBSERVED]])
    posterior = posterior_of(run, SENTENCE, Evidence(labels=labels))
    with torch.no_grad():
        best = run.model.readout(posterior.z_scores[0]).argmax(-1).tolist()
    clamps = [{"word": 0, "label": 3}, {"word": 2, "label": 5}]
    (result,) = infer(explorer, "tagging", SENTENCE, labels=clamps)["results"]
    assert result["answer"]["tags"] == [run.task.tags.name(tag) for tag in best]


@pytest.mark.parametrize(
    ("run", "clamps", "message"),
    [
        ("tagging", {"heads": [{"word": 4, "head": 0}]}, "there is no word 4: the sentence has 4"),
        ("tagging", {"heads": [{"word": -1, "head": 0}]}, "there is no word -1"),
        ("tagging", {"heads": [{"word": 0, "head": -2}]}, "there is no word -2"),
        ("tagging", {"heads": [{"word": 1, "head": 1}]}, "no word heads itself: word 1"),
        ("tagging", {"heads": [{"word": 1, "head": 0, "channel": 2}]}, "there is no channel 2"),
        ("tagging", {"labels": [{"word": 1, "label": 16}]}, "there is no label 16: the model has"),
        ("tagging", {"labels": [{"word": 1, "label": -1}]}, "there is no label -1"),
        ("mlm", {"heads": [{"word": 0, "head": "root"}]}, "this run has no ROOT that could be"),
        ("transformer", {"labels": [{"word": 0, "label": 1}]}, "only a probabilistic transformer"),
        ("pieces", {"labels": [{"word": 0, "label": 1}]}, "splits words into pieces cannot be"),
    ],
)
def test_clamps_out_of_range_are_named(explorer, run, clamps, message):
    with pytest.raises(InputError, match=message):
        infer(explorer, run, SENTENCE, **clamps)


def test_clamps_go_with_one_sentence(explorer):
    with pytest.raises(InputError, match="clamps go with exactly one sentence"):
        infer(explorer, "mlm", SENTENCE, SENTENCE, labels=[{"word": 0, "label": 1}])


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("", "a sentence must have words, got none"),
        (" \t\n", "a sentence must have words, got none"),
        ([], "a sentence must have words, got none"),
        ("a " * 201, "a sentence may have 200 words, got 201 words"),
        ("a" * 101, "a word may have 100 characters, got 101: 'aaaaaaaaaaaa...aaaaaaaaaaaaa'"),
        ("a \ud800", r"a word must be valid Unicode, got '\\ud800'"),
    ],
)
def test_sentences_that_cannot_be_read(explorer, sentence, message):
    with pytest.raises(InputError, match=message):
        infer(explorer, "mlm", sentence)


def test_a_sentence_of_too_many_pieces_is_refused(explorer):
    with pytest.raises(InputError, match="a sentence may have 300 pieces of words, got "):
        infer(explorer, "pieces", "\N{SNOWMAN}" * 100 + " " + "\N{COMET}" * 100 + " é" * 100)


def test_an_answer_has_an_end(explorer):
    with pytest.raises(InputError, match="an answer may take 8,000,000 numbers, got 10,240,000"):
        infer(explorer, "mlm", *["a " * 200] * 64)
    assert len(infer(explorer, "mlm", "a " * 200)["results"][0]["words"]) == 200


def test_labels_and_the_words_that_own_them(explorer, folders):
    expected = owners(load_run(folders["mlm"]), [3])[3]
    assert explorer.label("mlm", 3) == {"label": 3, "words": expected}
    with pytest.raises(NotFound, match="there is no label 16: the model has 16 labels, 0 to 15"):
        explorer.label("mlm", 16)
    with pytest.raises(NotFound, match="there is no label -1"):
        explorer.label("mlm", -1)
    with pytest.raises(NotFound, match="this is a transformer"):
        explorer.label("transformer", 0)
    with pytest.raises(NotFound, match=r"there is no run '\.\./mlm': the explorer has 'mlm', "):
        explorer.label("../mlm", 0)


def test_meanings_add_up(explorer):
    found = explorer.meanings("mlm")
    assert found["text"].startswith("dev: ")
    assert found["column"] == "upos"
    assert sum(label["strongest"] for label in found["labels"]) == pytest.approx(1)
    assert sorted(label["label"] for label in found["labels"]) == list(range(16))
    assert [channel["number"] for channel in found["channels"]] == [0, 1]
    for channel in found["channels"]:
        # heads are before or after a word, but for words alone in their sentence
        assert channel["before"] + channel["after"] == pytest.approx(1, abs=0.01)
    assert explorer.meanings("mlm") is found
    assert explorer.meanings("transformer")["labels"] is None


def test_meanings_without_data(folders, tmp_path: Path):
    """The sentence says nothing about where things are on the machine."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors", "run.toml"):
        (folder / name).write_bytes((folders["mlm"] / name).read_bytes())
    settings = (folder / "run.toml").read_text()
    start, end = settings.index("[data]"), settings.index("[encoder]")
    files = '[data]\nkind = "files"\nformat = "text"\ntrain = "x"\ndev = "y"\ntest = "z"\n\n'
    (folder / "run.toml").write_text(settings[:start] + files + settings[end:])
    explorer = Explorer([folder], tmp_path)
    assert explorer.runs()["runs"][0]["example"] == "she did not see the dog ."
    with pytest.raises(NotFound, match="the data of this run cannot be read") as error:
        explorer.meanings("elsewhere")
    assert str(tmp_path) not in str(error.value)
    for name in "xyz":
        (tmp_path / name).write_text("the dog sleeps\n" * 3)
    assert explorer.meanings("elsewhere")["text"].startswith("dev: 3 sentences, 9 words")


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ({}, {}),
        ({"channel": "all", "threshold": 0.3}, {"channel": "all", "threshold": 0.3}),
        ({"channel": 1, "iteration": 1}, {"channel": "1", "iteration": 1}),
        ({"kind": "heat"}, {"kind": "heat"}),
        ({"kind": "iterations"}, {"kind": "iterations"}),
        ({"kind": "labels", "iteration": -1}, {"kind": "labels", "iteration": -1}),
    ],
)
def test_pictures_are_those_of_the_command(explorer, folders, question, options):
    expected = draw(str(folders["tagging"]), " ".join(SENTENCE), **options)
    asked = {"run": "tagging", "sentence": SENTENCE, **question}
    assert explorer.draw(DrawQuestion(**asked)) == expected.svg()
    assert explorer.draw(DrawQuestion(**asked, format="html")) == expected.html()


def test_pictures_show_clamps(explorer):
    asked = {"run": "tagging", "sentence": SENTENCE, "threshold": 0.99, "format": "tex"}
    clamps = {"heads": [{"word": 0, "head": 3}]}
    assert r"\depedge" not in explorer.draw(DrawQuestion(**asked))
    assert explorer.draw(DrawQuestion(**asked, clamps=clamps)).count(r"\depedge") == 1


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"kind": "labels", "channel": 1}, "channel does not go with the kind 'labels'"),
        ({"channel": 7}, "there is no channel 7"),
        ({"iteration": 9}, "there is no iteration 9"),
        ({"threshold": float("nan")}, "threshold must be a number in"),
        ({"threshold": 2}, "threshold must be a number in"),
        ({"kind": "heat", "format": "tex"}, "a heat map has no form in TikZ"),
        ({"sentence": "a " * 150, "threshold": 0}, "a picture may have 20,000 arcs, got 22,"),
    ],
)
def test_pictures_that_cannot_be(explorer, question, message):
    with pytest.raises(InputError, match=message):
        explorer.draw(DrawQuestion(**{"run": "tagging", "sentence": SENTENCE, **question}))


def test_numbers_are_rounded_to_four_digits():
    assert as_json(np.array([0, 1, 0.12344, 0.123456, 1e-9, 0.99996, 0.5])) == (
        "[0,1,0.1234,0.1235,0,1,0.5]"
    )
    assert as_json({"a": [np.eye(2), None, True, 3, -1.23456]}) == (
        '{"a":[[[1,0],[0,1]],null,true,3,-1.2346]}'
    )
    values = np.random.default_rng(0).random((3, 2, 4))
    assert json.loads(as_json(values)) == np.round(values, 4).tolist()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.1, 1.1])
def test_damaged_weights_are_said_to_be(bad):
    with pytest.raises(InputError, match="the weights of this run are damaged"):
        as_json(np.array([0.5, bad]))


def test_any_text_survives():
    text = '</script>"\\\u202e\u0000é\U0001f600'
    assert json.loads(as_json({text: text})) == {text: text}
