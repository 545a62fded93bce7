"""Answers of the explorer's API, without HTTP: they are the marginals of the model."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from helpers.messages import refused
from helpers.runs import PT, TRANSFORMER, saved, saved_with_labels
from probformer.analysis.draw import draw, owners
from probformer.analysis.marginals import infer_sentence
from probformer.config import VocabularySettings
from probformer.crf.evidence import Evidence
from probformer.crf.inference import mean_field
from probformer.runs.prediction import predict
from probformer.runs.run_folder import load_run
from probformer.sentinels import ROOT, UNOBSERVED
from probformer.web.answers import InferAnswer
from probformer.web.draw import draw as draw_file
from probformer.web.infer import infer as infer_request
from probformer.web.meanings import Meanings, label_owners
from probformer.web.open_runs import NotFound, OpenRuns
from probformer.web.requests import DrawRequest, InferRequest
from probformer.web.to_json import as_json

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
        "parsing": saved_with_labels(base / "parsing"),
        "transformer": saved(base / "transformer", "mlm", TRANSFORMER),
        "pieces": saved(
            base / "pieces", "tagging", vocabulary=VocabularySettings(kind="subwords", size=300)
        ),
    }


@pytest.fixture(scope="module")
def runs(folders):
    return OpenRuns(list(folders.values()), Path("."))


def infer(runs, run, *sentences, **clamps):
    """The answer as clients get it: through JSON."""
    request = InferRequest(run=run, sentences=list(sentences), clamps=clamps)
    return json.loads(as_json(infer_request(runs, request)))


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


def test_runs_are_described(runs, folders):
    found = {run["name"]: run for run in runs.listed()["runs"]}
    assert list(found) == list(folders)
    assert found["tagging"] == {
        "name": "tagging",
        "model": "pt",
        "task": "tagging",
        "step": "iteration",
        "steps": 2,
        "channels": 2,
        "channel": None,
        "labels": 16,
        "has_root": True,
        "can_clamp": True,
        "example": found["tagging"]["example"],
    }
    assert found["parsing"]["channel"] == 0
    assert found["transformer"]["model"] == "transformer"
    assert (found["transformer"]["step"], found["transformer"]["steps"]) == ("layer", 1)
    assert found["transformer"]["labels"] is None
    assert not found["transformer"]["can_clamp"]
    assert not found["pieces"]["can_clamp"]
    for name, folder in folders.items():
        words = found[name]["example"].split()
        assert load_run(folder).vocabulary.count_unknown(words) == 0


def test_names_are_those_of_folders_and_unique(folders):
    again = OpenRuns([folders["mlm"], folders["mlm"], folders["ner"] / ".." / "mlm"], Path("."))
    assert [run["name"] for run in again.listed()["runs"]] == ["mlm", "mlm-2", "mlm-3"]


@pytest.mark.parametrize("name", ["mlm", "tagging", "classification", "parsing"])
def test_heads_and_labels_are_those_of_mean_field(runs, folders, name):
    (result,) = infer(runs, name, " ".join(SENTENCE))["results"]
    assert result["words"] == SENTENCE
    assert_tells(result, posterior_of(load_run(folders[name]), SENTENCE))
    assert (result["root"] is None) == (name == "mlm")


def test_attention_of_a_transformer(runs, folders):
    found = infer(runs, "transformer", SENTENCE)
    (result,) = found["results"]
    marginals = infer_sentence(load_run(folders["transformer"]), SENTENCE)
    np.testing.assert_allclose(result["heads"], marginals.heads, atol=HALF_A_DIGIT)
    assert found["step"] == "layer"
    assert result["labels"] is result["free_energy"] is result["root"] is None


@pytest.mark.parametrize(
    "name", ["mlm", "tagging", "classification", "ner", "cogs", "transformer", "pieces", "parsing"]
)
def test_answers_are_those_of_predict(runs, folders, name):
    sentences = [["the", "<mask>", "sleeps"], SENTENCE, ["<mask>", "<mask>"]]
    expected = predict(load_run(folders[name]), sentences)
    results = infer(runs, name, *sentences)["results"]
    for result, answer in zip(results, expected, strict=True):
        answer = json.loads(as_json(answer)) if name == "parsing" else answer  # rounds numbers
        assert {"words": result["words"], **result["answer"]} == json.loads(json.dumps(answer))


def test_labels_of_arcs_are_the_most_probable_ones(runs, folders):
    """Of all arcs of some probability, and of no others."""
    run = load_run(folders["parsing"])
    (result,) = infer(runs, "parsing", SENTENCE)["results"]
    for t, step in enumerate(posterior_of(run, SENTENCE).trace):
        joint = step.arc_label_marginals[0].double()  # (4, 5, m), ROOT last
        for i, shown in enumerate(result["arc_labels"][t]):
            heads = [j for j in range(5) if float(joint[i, j].sum()) >= 0.01]
            assert [arc["head"] for arc in shown] == ["root" if j == 4 else j for j in heads]
            for j, arc in zip(heads, shown, strict=True):
                number = int(joint[i, j].argmax())
                assert arc["label"] == run.task.labels.name(number)
                given_arc = float(joint[i, j, number] / joint[i, j].sum())
                assert arc["p"] == pytest.approx(given_arc, abs=1.1e-4)


@pytest.mark.parametrize("name", ["mlm", "tagging", "transformer", "pieces"])
def test_other_runs_have_no_labels_of_arcs(runs, name):
    (result,) = infer(runs, name, SENTENCE)["results"]
    assert result["arc_labels"] is None


@pytest.mark.parametrize("name", ["mlm", "cogs", "classification", "parsing", "transformer"])
def test_answers_are_as_the_api_describes_them(runs, name):
    answer = infer(runs, name, SENTENCE, ["dogs"])
    assert InferAnswer.model_validate(answer, strict=True).run == name


def test_a_batch_is_its_sentences_one_by_one(runs):
    sentences = [SENTENCE, ["dogs"], ["the", "<mask>", "of", "the", "dog", "sleeps"]]
    together = infer(runs, "tagging", *sentences)["results"]
    for sentence, result in zip(sentences, together, strict=True):
        (alone,) = infer(runs, "tagging", sentence)["results"]
        assert (alone["words"], alone["answer"]) == (result["words"], result["answer"])
        np.testing.assert_allclose(alone["heads"], result["heads"], atol=1.01e-4)
        np.testing.assert_allclose(alone["root"], result["root"], atol=1.01e-4)


def test_unknown_words_are_named_by_their_places(runs):
    (result,) = infer(runs, "mlm", "the quokka <mask> <unk> zzz .")["results"]
    assert result["unknown"] == [1, 3, 4]


def test_clamps_are_evidence(runs, folders):
    run = load_run(folders["tagging"])
    heads, labels = torch.full((1, 2, 4), UNOBSERVED), torch.full((1, 4), UNOBSERVED)
    heads[0, :, 0], heads[0, 1, 2], heads[0, 0, 3] = 2, ROOT, 1
    labels[0, 1] = 7
    (result,) = infer(
        runs,
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


def test_the_task_answers_from_the_clamped_inference(runs, folders):
    run = load_run(folders["tagging"])
    labels = torch.tensor([[3, UNOBSERVED, 5, UNOBSERVED]])
    posterior = posterior_of(run, SENTENCE, Evidence(labels=labels))
    with torch.no_grad():
        best = run.model.readout(posterior.z_scores[0]).argmax(-1).tolist()
    clamps = [{"word": 0, "label": 3}, {"word": 2, "label": 5}]
    (result,) = infer(runs, "tagging", SENTENCE, labels=clamps)["results"]
    assert result["answer"]["tags"] == [run.task.tags.name(tag) for tag in best]


@pytest.mark.parametrize(
    ("run", "clamps", "named"),
    [
        ("tagging", {"heads": [{"word": 4, "head": 0}]}, "word 4"),
        ("tagging", {"heads": [{"word": -1, "head": 0}]}, "word -1"),
        ("tagging", {"heads": [{"word": 0, "head": -2}]}, "word -2"),
        ("tagging", {"heads": [{"word": 1, "head": 1}]}, "word 1"),
        ("tagging", {"heads": [{"word": 1, "head": 0, "channel": 2}]}, "channel 2"),
        ("tagging", {"labels": [{"word": 1, "label": 16}]}, "label 16"),
        ("tagging", {"labels": [{"word": 1, "label": -1}]}, "label -1"),
        ("mlm", {"heads": [{"word": 0, "head": "root"}]}, "ROOT"),
        ("transformer", {"labels": [{"word": 0, "label": 1}]}, "transformer"),
        ("pieces", {"labels": [{"word": 0, "label": 1}]}, "pieces"),
    ],
)
def test_clamps_out_of_range_are_named(runs, run, clamps, named):
    with refused(named):
        infer(runs, run, SENTENCE, **clamps)


def test_clamps_go_with_one_sentence(runs):
    with refused("clamps"):
        infer(runs, "mlm", SENTENCE, SENTENCE, labels=[{"word": 0, "label": 1}])


@pytest.mark.parametrize(
    ("sentence", "named"),
    [
        ("", "words"),
        (" \t\n", "words"),
        ([], "words"),
        ("a " * 201, "200 words"),
        ("a" * 101, "100 characters"),
        ("a \ud800", "Unicode"),
    ],
)
def test_sentences_that_cannot_be_read(runs, sentence, named):
    with refused(named):
        infer(runs, "mlm", sentence)


def test_a_sentence_of_too_many_pieces_is_refused(runs):
    with refused("300 pieces"):
        infer(runs, "pieces", "\N{SNOWMAN}" * 100 + " " + "\N{COMET}" * 100 + " é" * 100)


def test_an_answer_has_an_end(runs):
    with refused("8,000,000"):
        infer(runs, "mlm", *["a " * 200] * 64)
    assert len(infer(runs, "mlm", "a " * 200)["results"][0]["words"]) == 200


def test_labels_and_the_words_that_own_them(runs, folders):
    expected = owners(load_run(folders["mlm"]), [3])[3]
    assert label_owners(runs, "mlm", 3) == {"label": 3, "words": expected}
    with refused("label 16", error=NotFound):
        label_owners(runs, "mlm", 16)
    with refused("label -1", error=NotFound):
        label_owners(runs, "mlm", -1)
    with refused("transformer", error=NotFound):
        label_owners(runs, "transformer", 0)
    with refused("../mlm", "'mlm'", error=NotFound):
        label_owners(runs, "../mlm", 0)


def test_meanings_add_up(runs):
    meanings = Meanings(runs)
    found = meanings.of("mlm")
    assert found["text"].startswith("dev: ")
    assert found["column"] == "upos"
    assert sum(label["strongest"] for label in found["labels"]) == pytest.approx(1)
    assert sorted(label["label"] for label in found["labels"]) == list(range(16))
    assert [channel["number"] for channel in found["channels"]] == [0, 1]
    for channel in found["channels"]:
        # heads are before or after a word, but for words alone in their sentence
        assert channel["before"] + channel["after"] == pytest.approx(1, abs=0.01)
    assert meanings.of("mlm") is found
    assert meanings.of("transformer")["labels"] is None


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
    runs = OpenRuns([folder], tmp_path)
    assert runs.listed()["runs"][0]["example"] == "she did not see the dog ."
    with pytest.raises(NotFound, match="the data of this run cannot be read") as error:
        Meanings(runs).of("elsewhere")
    assert str(tmp_path) not in str(error.value)
    for name in "xyz":
        (tmp_path / name).write_text("the dog sleeps\n" * 3)
    assert Meanings(runs).of("elsewhere")["text"].startswith("dev: 3 sentences, 9 words")


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({}, {}),
        ({"channel": "all", "threshold": 0.3}, {"channel": "all", "threshold": 0.3}),
        ({"channel": 1, "iteration": 1}, {"channel": "1", "iteration": 1}),
        ({"kind": "heat"}, {"kind": "heat"}),
        ({"kind": "iterations"}, {"kind": "iterations"}),
        ({"kind": "labels", "iteration": -1}, {"kind": "labels", "iteration": -1}),
    ],
)
def test_pictures_are_those_of_the_command(runs, folders, fields, options):
    for run in ("tagging", "parsing"):
        expected = draw(str(folders[run]), " ".join(SENTENCE), **{"kind": "arcs", **options})
        body = {"run": run, "sentence": SENTENCE, **fields}
        assert draw_file(runs, DrawRequest(**body)) == expected.svg()
        assert draw_file(runs, DrawRequest(**body, format="html")) == expected.html()


def test_the_tree_of_a_parser_is_a_picture(runs, folders):
    expected = draw(str(folders["parsing"]), " ".join(SENTENCE), "tree")
    body = {"run": "parsing", "sentence": SENTENCE, "kind": "tree"}
    assert draw_file(runs, DrawRequest(**body)) == expected.svg()
    assert draw_file(runs, DrawRequest(**body, format="tex")) == expected.tikz()


def test_pictures_show_clamps(runs):
    body = {"run": "tagging", "sentence": SENTENCE, "threshold": 0.99, "format": "tex"}
    clamps = {"heads": [{"word": 0, "head": 3}]}
    assert r"\depedge" not in draw_file(runs, DrawRequest(**body))
    assert draw_file(runs, DrawRequest(**body, clamps=clamps)).count(r"\depedge") == 1


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"kind": "labels", "channel": 1}, "channel"),
        ({"kind": "tree"}, "tree"),
        ({"channel": 7}, "channel 7"),
        ({"iteration": 9}, "iteration 9"),
        ({"threshold": float("nan")}, "threshold"),
        ({"threshold": 2}, "threshold"),
        ({"kind": "heat", "format": "tex"}, "heat map"),
        ({"sentence": "a " * 150, "threshold": 0}, "20,000 arcs"),
    ],
)
def test_pictures_that_cannot_be(runs, fields, named):
    with refused(named):
        draw_file(runs, DrawRequest(**{"run": "tagging", "sentence": SENTENCE, **fields}))


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
    with refused("weights"):
        as_json(np.array([0.5, bad]))


def test_any_text_survives():
    text = '</script>"\\\u202e\u0000é\U0001f600'
    assert json.loads(as_json({text: text})) == {text: text}
