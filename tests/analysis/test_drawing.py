"""`draw`: from a run and a sentence to a picture, and what it says to wrong input."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.runs import PT, TRANSFORMER, saved
from probformer.analysis.drawing import draw, owners
from probformer.analysis.reading import read_sentences
from probformer.cli import app
from probformer.config import VocabularySettings
from probformer.errors import InputError
from probformer.runs.run_folder import load_run

SENTENCE = "the dog sleeps ."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(saved(tmp_path_factory.mktemp("run"), encoder={**PT, "root": {"labels": 5}}))


def arcs_of(panel):
    return {arc[:2]: arc.probability for arc in panel.arcs}


def test_channels_and_iterations_are_those_of_the_model(folder):
    (reading,) = read_sentences(load_run(folder), [SENTENCE.split()])
    assert reading.root is not None
    picture = draw(folder, SENTENCE, channel="1", iteration=1, threshold=0)
    expected = {(i, j): reading.heads[0, 1, i, j] for i in range(4) for j in range(4) if i != j}
    expected |= {(i, None): reading.root[0, 1, i] for i in range(4)}
    assert arcs_of(picture.panels[0]) == pytest.approx(expected)

    (average,) = draw(folder, SENTENCE, threshold=0).panels
    assert arcs_of(average)[0, 1] == pytest.approx(reading.heads[-1, :, 0, 1].mean())
    assert arcs_of(average)[0, None] == pytest.approx(reading.root[-1, :, 0].mean())

    grid = draw(folder, SENTENCE, channel="all", threshold=0)
    assert [panel.title for panel in grid.panels] == ["channel 0", "channel 1"]
    moving = draw(folder, SENTENCE, "iterations", channel="0", threshold=0)
    assert [panel.title for panel in moving.panels] == ["iteration 1 of 2", "iteration 2 of 2"]
    for t, panel in enumerate(moving.panels):
        assert arcs_of(panel)[2, 3] == pytest.approx(reading.heads[t, 0, 2, 3])
    (_, matrix) = draw(folder, SENTENCE, "heat", channel="1").panels[0]
    np.testing.assert_allclose(matrix[:, 0], reading.root[-1, 1])
    np.testing.assert_allclose(matrix[:, 1:], reading.heads[-1, 1])


def test_labels_are_owned_by_the_words_that_prefer_them(folder):
    run = load_run(folder)
    (reading,) = read_sentences(run, [SENTENCE.split()])
    assert reading.labels is not None
    picture = draw(folder, SENTENCE, "labels")
    strongest = picture.labels[0][0]
    assert strongest.number == reading.labels[-1, 0].argmax()
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
    with pytest.raises(InputError, match="there is no layer 2: the model has 1 layer"):
        draw(folder, SENTENCE, iteration=2)
    with pytest.raises(InputError, match="labels are those of a probabilistic transformer"):
        draw(folder, SENTENCE, "labels")
    with pytest.raises(InputError, match="graphs are of probabilistic transformers"):
        draw(folder, kind="factors")


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
    ("out", "message"),
    [
        ("x.pdf", "x.pdf: the suffix must be one of .svg, .html, .tex, .txt"),
        ("folder.svg", "folder.svg: is a folder, expected a file to write to"),
        ("file/x.svg", "file/x.svg: cannot be written, "),
    ],
)
def test_where_a_picture_cannot_go_is_said_first(tmp_path: Path, out, message):
    """Before it is known that there is no run."""
    (tmp_path / "folder.svg").mkdir()
    (tmp_path / "file").touch()
    done = CliRunner().invoke(app, ["draw", "nowhere", SENTENCE, "--out", str(tmp_path / out)])
    assert isinstance(done.exception, InputError)
    assert message in str(done.exception)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["  "], "a sentence must have words, got none"),
        ([SENTENCE, "--channel", "2"], "there is no channel 2: the model has 2 channels, 0 to 1"),
        ([SENTENCE, "--channel", "x"], "channel must be a number, 'average' or 'all', got 'x'"),
        ([SENTENCE, "--channel", "best"], "channel 'best' needs gold heads, which a sentence on"),
        ([SENTENCE, "--iteration", "3"], "there is no iteration 3: the model has 2 iterations"),
        ([SENTENCE, "--threshold", "2"], "threshold must be a number in [0, 1], got 2.0"),
        ([SENTENCE, "--kind", "cube"], "kind must be one of 'arcs'"),
        ([SENTENCE, "--kind", "factors"], "sentence does not go with the kind 'factors'"),
        ([SENTENCE, "--kind", "labels", "--channel", "1"], "channel does not go with the kind"),
        ([SENTENCE, "--kind", "iterations", "--channel", "all"], "got 'all'"),
        ([SENTENCE, "--out", "x.pdf"], "x.pdf: the suffix must be one of .svg, .html, .tex, .txt"),
        (["--kind", "factors"], "a factor graph has no form as text: save it as .svg"),
    ],
)
def test_wrong_input_is_one_clear_sentence(folder, arguments, message):
    done = CliRunner().invoke(app, ["draw", folder, *arguments])
    assert isinstance(done.exception, InputError)  # which ends in exit status 2
    assert message in str(done.exception)
