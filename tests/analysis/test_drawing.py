"""`draw`: from a run and a sentence to a picture, and what it says to wrong input."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.messages import check_wording, refused
from helpers.runs import PT, TRANSFORMER, TREES, saved, saved_with_labels
from probformer.analysis.draw import draw, owners
from probformer.analysis.marginals import infer_sentences
from probformer.cli import app
from probformer.config import VocabularySettings
from probformer.errors import InputError
from probformer.runs.prediction import predict
from probformer.runs.run_folder import load_run
from probformer.sentinels import ROOT

SENTENCE = "the dog sleeps ."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(saved(tmp_path_factory.mktemp("run"), encoder={**PT, "root": {"labels": 5}}))


def arcs_of(panel):
    return {arc[:2]: arc.probability for arc in panel.arcs}


def test_channels_and_iterations_are_those_of_the_model(folder):
    (marginals,) = infer_sentences(load_run(folder), [SENTENCE.split()])
    assert marginals.root is not None
    picture = draw(folder, SENTENCE, channel="1", iteration=1, threshold=0)
    expected = {(i, j): marginals.heads[0, 1, i, j] for i in range(4) for j in range(4) if i != j}
    expected |= {(i, None): marginals.root[0, 1, i] for i in range(4)}
    assert arcs_of(picture.panels[0]) == pytest.approx(expected)

    (average,) = draw(folder, SENTENCE, threshold=0).panels
    assert arcs_of(average)[0, 1] == pytest.approx(marginals.heads[-1, :, 0, 1].mean())
    assert arcs_of(average)[0, None] == pytest.approx(marginals.root[-1, :, 0].mean())

    grid = draw(folder, SENTENCE, channel="all", threshold=0)
    assert [panel.title for panel in grid.panels] == ["channel 0", "channel 1"]
    moving = draw(folder, SENTENCE, "iterations", channel="0", threshold=0)
    assert [panel.title for panel in moving.panels] == ["iteration 1 of 2", "iteration 2 of 2"]
    for t, panel in enumerate(moving.panels):
        assert arcs_of(panel)[2, 3] == pytest.approx(marginals.heads[t, 0, 2, 3])
    (_, matrix) = draw(folder, SENTENCE, "heat", channel="1").panels[0]
    np.testing.assert_allclose(matrix[:, 0], marginals.root[-1, 1])
    np.testing.assert_allclose(matrix[:, 1:], marginals.heads[-1, 1])


def test_labels_are_owned_by_the_words_that_prefer_them(folder):
    run = load_run(folder)
    (marginals,) = infer_sentences(run, [SENTENCE.split()])
    assert marginals.labels is not None
    picture = draw(folder, SENTENCE, "labels")
    strongest = picture.labels[0][0]
    assert strongest.number == marginals.labels[-1, 0].argmax()
    alone = run.model.encoder.word_scores.weight.detach().softmax(-1)[1:-1, strongest.number]
    assert strongest.owners[0] == run.vocabulary.words[1 + int(alone.argmax())]


def test_owners_are_words_not_bytes(tmp_path: Path):
    folder = saved(tmp_path, vocabulary=VocabularySettings(kind="subwords", size=400))
    assert not any(
        "Ġ" in word for words in owners(load_run(folder), range(16)).values() for word in words
    )


def test_attention_of_a_transformer_has_pictures_but_no_labels(tmp_path: Path):
    folder = str(saved(tmp_path, encoder=TRANSFORMER))
    assert len(draw(folder, SENTENCE, channel="all").panels) == 2
    assert [panel.title for panel in draw(folder, SENTENCE, "iterations").panels] == [
        "layer 1 of 1"
    ]
    with refused("layer 2"):
        draw(folder, SENTENCE, iteration=2)
    with refused("labels"):
        draw(folder, SENTENCE, "labels")
    with refused("graphs"):
        draw(folder, kind="factors")


@pytest.fixture(scope="module")
def parser(tmp_path_factory):
    encoder = {**TREES, "inference": {"iterations": 2, "heads": ["independent", "tree"]}}
    return str(saved_with_labels(tmp_path_factory.mktemp("parser"), encoder=encoder, channel=1))


def test_the_picture_of_a_parser_is_its_tree(parser):
    run = load_run(parser)
    (answer,) = predict(run, [SENTENCE.split()])
    for picture in (draw(parser, SENTENCE), draw(parser, SENTENCE, "tree", probabilities=True)):
        (panel,) = picture.panels
        for word, arc in enumerate(panel.arcs):
            head = answer["heads"][word]
            assert arc[:2] == (word, None if head == ROOT else head)
            assert arc.probability == pytest.approx(answer["head_probabilities"][word])
            assert arc.label == answer["labels"][word]
            assert arc.label_probability == pytest.approx(answer["label_probabilities"][word])
    assert len(panel.arcs) == 4
    assert answer["labels"][0] in draw(parser, SENTENCE).text()


def test_arcs_of_a_parser_have_labels_in_its_channel(parser):
    (marginals,) = infer_sentences(load_run(parser), [SENTENCE.split()])
    for options in ({"kind": "arcs"}, {"threshold": 0.15}, {"channel": "1"}, {"iteration": -1}):
        (panel,) = draw(parser, SENTENCE, **options).panels
        texts = marginals.arc_labels.texts(-1)
        assert panel.arcs
        for arc in panel.arcs:
            place = 4 if arc.head is None else arc.head
            assert arc.label == texts[arc.dependent][place]
            of_label = marginals.arc_labels.probabilities[-1, arc.dependent, place]
            assert arc.label_probability == pytest.approx(of_label)
            assert arc.probability >= 0.15
    first, last = draw(parser, SENTENCE, "iterations", threshold=0).panels
    assert all(arc.label for arc in (*first.arcs, *last.arcs))
    assert [arc.label for arc in first.arcs] != [arc.label for arc in last.arcs]
    (_, matrix) = draw(parser, SENTENCE, "heat").panels[0]
    np.testing.assert_allclose(matrix[:, 1:], marginals.heads[-1, 1])


def test_other_channels_of_a_parser_have_no_labels(parser):
    for options in ({"channel": "0"}, {"channel": "average"}):
        (panel,) = draw(parser, SENTENCE, threshold=0, **options).panels
        assert not any(arc.label for arc in panel.arcs)
    panels = draw(parser, SENTENCE, channel="all", threshold=0).panels
    assert [any(arc.label for arc in panel.arcs) for panel in panels] == [False, True]


def test_a_parser_that_is_a_transformer_has_a_tree_and_attention(tmp_path: Path):
    folder = str(saved(tmp_path, "parsing", TRANSFORMER))
    (answer,) = predict(load_run(folder), [SENTENCE.split()])
    (panel,) = draw(folder, SENTENCE).panels
    assert [arc.label for arc in panel.arcs] == answer["labels"]
    (attention,) = draw(folder, SENTENCE, "arcs", threshold=0).panels
    assert len(attention.arcs) == 12
    assert not any(arc.label for arc in attention.arcs)


def test_the_graphs_of_a_parser_have_labels(parser):
    """Of a run as many as its data had; of a config as many as the data has."""
    count = len(load_run(parser).task.labels)
    assert f"one of {count}." in draw(parser, kind="factors").svg()
    assert f"one of {count}<" in draw(parser, kind="computation").svg()
    for kind in ("factors", "computation"):
        assert "one of those in the data" in draw("parsing-builtin-pt", kind=kind).svg()
        assert "label of the arc" not in draw("tagging-builtin-pt", kind=kind).svg()
    assert (
        "all heads of channel 0, with exactly one"
        in draw("parsing-builtin-pt", kind="factors").svg()
    )


def test_only_a_parser_has_a_tree(folder):
    with refused("'tree'", "'tagging'"):
        draw(folder, SENTENCE, "tree")


def test_a_damaged_config_is_named(parser, tmp_path: Path):
    (tmp_path / "config.json").write_text('{"encoder": {}}')
    with refused("config.json", "kind"):
        draw(str(tmp_path), kind="factors")


def test_the_command_writes_files_and_to_the_terminal(folder, tmp_path: Path):
    for suffix in ("svg", "html", "tex", "txt"):
        out = tmp_path / f"x.{suffix}"
        done = CliRunner().invoke(app, ["draw", folder, SENTENCE, "--out", str(out)])
        assert (done.exit_code, done.stdout) == (0, "")
        assert "sleeps" in out.read_text(encoding="utf-8")
    done = CliRunner().invoke(app, ["draw", folder, SENTENCE, "--threshold", "0"])
    assert "the" in done.output
    assert "▼" in done.output
    out = tmp_path / "graph.svg"
    for target, kind in ((folder, "factors"), ("mlm-builtin-pt", "computation")):
        done = CliRunner().invoke(app, ["draw", target, "--kind", kind, "--out", str(out)])
        assert done.exit_code == 0
        ET.parse(out)


def test_words_that_the_model_does_not_know_are_named(folder, capsys):
    draw(folder, "the quokka . \x1b[2J quokka")
    assert capsys.readouterr().err == "note: 2 unknown words: quokka, \\x1b[2J\n"
    draw(folder, "the .")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("out", "named"),
    [
        ("x.pdf", "x.pdf"),
        ("folder.svg", "folder.svg"),
        ("file/x.svg", "file/x.svg"),
    ],
)
def test_where_a_picture_cannot_go_is_said_first(tmp_path: Path, out, named):
    """Before it is known that there is no run."""
    (tmp_path / "folder.svg").mkdir()
    (tmp_path / "file").touch()
    done = CliRunner().invoke(app, ["draw", "nowhere", SENTENCE, "--out", str(tmp_path / out)])
    assert isinstance(done.exception, InputError)
    check_wording(str(done.exception), named)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["  "], "words"),
        ([SENTENCE, "--channel", "2"], "channel 2"),
        ([SENTENCE, "--channel", "x"], "channel"),
        ([SENTENCE, "--channel", "best"], "best"),
        ([SENTENCE, "--iteration", "3"], "iteration 3"),
        ([SENTENCE, "--threshold", "2"], "threshold"),
        ([SENTENCE, "--kind", "cube"], "kind"),
        ([SENTENCE, "--kind", "factors"], "sentence"),
        ([SENTENCE, "--kind", "labels", "--channel", "1"], "labels"),
        ([SENTENCE, "--kind", "tree", "--channel", "1"], "tree"),
        ([SENTENCE, "--kind", "iterations", "--channel", "all"], "all"),
        ([SENTENCE, "--out", "x.pdf"], "x.pdf"),
        (["--kind", "factors"], "factor graph"),
    ],
)
def test_wrong_input_is_one_clear_sentence(folder, arguments, named):
    done = CliRunner().invoke(app, ["draw", folder, *arguments])
    assert isinstance(done.exception, InputError)  # which ends in exit status 2
    check_wording(str(done.exception), named)
