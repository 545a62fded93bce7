"""Settings whose names have changed are still read under their old names."""

from dataclasses import replace

import pytest

from helpers.runs import assert_same_runs, ready, settings
from probformer.config import RunSettings, VocabularySettings, from_toml, to_toml
from probformer.config.lookup import read_settings
from probformer.runs.run_folder import load_run
from probformer.training.commands import train_one

WITH_DROPOUT = "ner-conll2003-best"


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ([], 1.0),
        (["vocabulary.forget=2"], 2.0),
        (["vocabulary.forget=2", "vocabulary.word_dropout=3"], 3.0),
        (["vocabulary.word_dropout=3", "vocabulary.forget=2"], 2.0),
    ],
    ids=["config", "old", "old, new", "new, old"],
)
def test_the_last_of_both_names_counts(changes, value):
    assert read_settings(WITH_DROPOUT, changes).vocabulary.word_dropout == value


def test_a_new_name_changes_a_config_with_the_old_one(tmp_path):
    path = tmp_path / "mine.toml"
    text = to_toml(read_settings(WITH_DROPOUT, [])).replace("word_dropout", "forget")
    path.write_text(text, encoding="utf-8")
    assert from_toml(RunSettings, path) == read_settings(WITH_DROPOUT, [])
    changed = read_settings(str(path), ["vocabulary.word_dropout=3"])
    assert changed.vocabulary == VocabularySettings(min_frequency=1, word_dropout=3.0)


def test_an_old_run_loads_and_ends_the_same_when_resumed(tmp_path, monkeypatch):
    often = settings("tagging", checkpoint_minutes=0.0)
    given = replace(often, vocabulary=VocabularySettings(word_dropout=2.0))
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    train_one(given, whole)
    training, updates = ready(given, stopped), []

    def update(indices):
        if len(updates) == 5:
            raise KeyboardInterrupt
        updates.append(indices)
        type(training)._update(training, indices)

    monkeypatch.setattr(training, "_update", update)
    with pytest.raises(KeyboardInterrupt):
        training.train()
    old = (stopped / "run.toml").read_text().replace("word_dropout", "forget")
    (stopped / "run.toml").write_text(old)
    assert load_run(stopped).settings == given
    ready(given, stopped, resume=True).train()
    assert_same_runs(whole, stopped)
