"""What parsing counts, beside counts by hand; and the command."""

import json
import re
import runpy
from dataclasses import replace

import conllu
import numpy as np
import pytest

from helpers.commands import probformer
from helpers.messages import check_wording, refused
from helpers.places import TESTS
from helpers.runs import PT, TRANSFORMER, settings
from probformer.analysis.marginals import SentenceMarginals
from probformer.analysis.parse import command, scoring
from probformer.analysis.parse.attachment import (
    LEFT,
    RANDOM,
    RIGHT,
    Accuracy,
    baseline_hits,
    group_of,
)
from probformer.analysis.parse.command import parse_file
from probformer.analysis.parse.scoring import ANY, AVERAGE, ParserOptions, parse_sentences
from probformer.config import FileData, from_dict
from probformer.config.lookup import read_settings
from probformer.data.builtin import builtin_corpus
from probformer.data.readers import SentenceFile
from probformer.data.sentence import Sentence
from probformer.runs.run_folder import load_run
from probformer.sentinels import ROOT, UNOBSERVED
from probformer.training.commands import train_one

SEE = Sentence(
    ("she", "saw", "dogs", "."), {"upos": ("PRON", "VERB", "NOUN", "PUNCT")}, (1, -1, 1, 1)
)
BARK = Sentence(("dogs", "bark"), {"upos": ("NOUN", "VERB")}, (1, -1))
THIRD = 1 / 3

# As trees: she saw dogs . -> 1 ROOT 1 2 in channel 0, ROOT 0 1 1 in channel 1; on average the gold
# tree, 1 ROOT 1 1. dogs bark, where a variable says what the root is -> ROOT 0 everywhere.
SEEN = [
    [[0, 0.96, 0.02, 0.02], [THIRD, 0, THIRD, THIRD], [0.05, 0.9, 0, 0.05], [0.05, 0.05, 0.9, 0]],
    [[0, THIRD, THIRD, THIRD], [0.9, 0, 0.05, 0.05], [0.05, 0.9, 0, 0.05], [0.02, 0.96, 0.02, 0]],
]
BARKED = [[[0, 0.6], [0.9, 0]]] * 2
BARKED_ROOT = np.full((2, 2, 2), [0.4, 0.1])


@pytest.fixture
def sentence_marginals(monkeypatch):
    """In the first of two iterations the channels have changed places."""
    heads = [np.array([given[::-1], given]) for given in (SEEN, BARKED)]
    given = [
        SentenceMarginals(sentence.words, one, root, np.ones((2, len(sentence), 1)), None)
        for sentence, one, root in zip((SEE, BARK), heads, (None, BARKED_ROOT), strict=True)
    ]
    monkeypatch.setattr(scoring, "infer_sentences", lambda run, sentences: given)
    return given


def parsed(**options):
    return parse_sentences(None, [SEE, BARK], ParserOptions(**options))


def test_accuracies_are_those_counted_by_hand(sentence_marginals):
    """UAS of 6 words, UUAS of 4 arcs; without punctuation of 5 words and 3 arcs."""
    result = parsed()
    assert [heads.tolist() for heads in result.heads] == [[1, ROOT, 1, 1], [ROOT, 0]]
    assert result.iteration == 2
    assert result.best_channel() == 1
    assert result.accuracy(AVERAGE) == Accuracy(4 / 6, 4 / 4, 3 / 5, 3 / 3)
    assert result.accuracy("channel 0") == Accuracy(3 / 6, 3 / 4, 3 / 5, 3 / 3)
    assert result.accuracy("channel 1") == Accuracy(2 / 6, 4 / 4, 1 / 5, 3 / 3)
    assert result.accuracy(ANY) == Accuracy(4 / 6, 4 / 4, 3 / 5, 3 / 3)
    assert result.accuracy(LEFT) == Accuracy(1 / 6, 3 / 4, 1 / 5, 3 / 3)
    assert result.accuracy(RIGHT) == Accuracy(3 / 6, 3 / 4, 3 / 5, 3 / 3)


def test_words_without_a_gold_head_do_not_count(sentence_marginals):
    """Here "saw" and the full stop: UAS of 4 words, UUAS of 3 arcs, none of punctuation."""
    partial = replace(SEE, heads=(1, UNOBSERVED, 1, UNOBSERVED))
    result = parse_sentences(None, [partial, BARK], ParserOptions())
    assert [heads.tolist() for heads in result.heads] == [[1, ROOT, 1, 1], [ROOT, 0]]
    for way, expected in {
        AVERAGE: (2 / 4, 3 / 3),
        "channel 0": (2 / 4, 3 / 3),
        "channel 1": (1 / 4, 3 / 3),
        ANY: (3 / 4, 3 / 3),
        LEFT: (1 / 4, 3 / 3),
        RIGHT: (3 / 4, 3 / 3),
    }.items():
        assert result.accuracy(way) == Accuracy(*expected, *expected), way
    assert 0 < result.accuracy(RANDOM).uas < 1


def test_any_channel_asks_each_word_alone(sentence_marginals):
    """So that no word is the root where there is no variable for it, whatever the trees are."""
    del sentence_marginals[1]
    result = parse_sentences(None, [SEE], ParserOptions())
    assert result.accuracy(ANY) == Accuracy(3 / 4, 3 / 3, 2 / 3, 2 / 2)


def test_iterations(sentence_marginals):
    result = parsed(iteration=1, every_iteration=True)
    assert (result.iteration, [*result.iterations]) == (1, [1, 2])
    assert (result.best_channel(), result.best_channel(2)) == (0, 1)
    assert result.accuracy("channel 0") == result.accuracy("channel 1", 2)
    assert result.accuracy(LEFT, 1) == result.accuracy(LEFT, 2)
    assert len(result.heads) == 2


def test_channels_and_decoders_by_choice(sentence_marginals):
    assert parsed(channel=0).heads[0].tolist() == [1, ROOT, 1, 2]
    assert parsed(channel=1).heads[0].tolist() == [ROOT, 0, 1, 1]
    assert parsed(channel="best").heads[0].tolist() == [ROOT, 0, 1, 1]
    assert parsed(channel="best", iteration=1).chosen == 0
    assert parsed(channel=0, decoder="argmax").heads[1].tolist() == [1, 0]
    for wrong, named in (
        ({"channel": 2}, "channel 2"),
        ({"iteration": 3}, "iteration 3"),
        ({"channel": "all"}, "channel"),
        ({"decoder": "best"}, "decoder"),
    ):
        with refused(named):
            parsed(**wrong)


def test_a_root_variable_has_its_say(sentence_marginals):
    sentence_marginals[1] = replace(sentence_marginals[1], root=np.full((2, 2, 2), [0.01, 0.7]))
    assert parsed().heads[1].tolist() == [1, ROOT]


def test_a_word_does_not_head_itself(sentence_marginals):
    """By what they leave to others, c hangs from b; by bare numbers it would be the root."""
    heads = np.array([[[[0, 0.9, 0.1], [0.45, 0, 0.55], [0.05, 0.15, 0.8]]]])
    sentence_marginals[:] = [SentenceMarginals(("a", "b", "c"), heads, None, None, None)]
    sentence = Sentence(("a", "b", "c"), {}, (1, -1, 1))
    assert parse_sentences(None, [sentence], ParserOptions()).heads[0].tolist() == [1, ROOT, 1]


def test_groups_of_lengths(monkeypatch):
    """A group ends with the length it is named after."""
    given = [Sentence(("a",) * n, {}, (-1, *range(n - 1))) for n in (1, 10, 11, 41)]
    monkeypatch.setattr(
        scoring,
        "infer_sentences",
        lambda run, sentences: [
            SentenceMarginals(tuple(s), np.full((1, 1, len(s), len(s)), 0.1), None, None, None)
            for s in sentences
        ],
    )
    result = parse_sentences(None, given, ParserOptions())
    assert [group_of(sentence) for sentence in given] == [0, 0, 1, 4]
    assert result.accuracy(LEFT, group=0) == Accuracy(1, 1, 1, 1)
    assert result.accuracy(LEFT, group=2) == Accuracy(None, None, None, None)
    assert result.accuracy(RIGHT, group=1).uas == 0


def test_random_heads_are_uniform():
    """Over the other words and the root."""
    n, chance = 5, np.random.default_rng(0)
    gold = np.array([ROOT, 0, 1, 2, 3])
    uas, uuas = np.mean([baseline_hits(gold, chance)[RANDOM] for _ in range(4000)], axis=0)
    np.testing.assert_allclose(uas, 1 / n, atol=0.02)
    np.testing.assert_allclose(uuas, [0, *[1 - (1 - 1 / n) ** 2] * (n - 1)], atol=0.02)


def test_sentences_need_heads():
    with refused("she saw dogs ."):
        parse_sentences(None, [replace(SEE, heads=None)], ParserOptions())
    with refused("sentences"):
        parse_sentences(None, [], ParserOptions())


TREEBANK = """\
# sent_id = 1
# text = She can't see dogs.
1\tShe\tshe\tPRON\tPRP\tCase=Nom\t4\tnsubj\t_\t_
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\t_
2\tca\tcan\tAUX\tMD\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
4\tsee\tsee\tVERB\tVB\t_\t0\troot\t0:root\t_
4.1\tsee\tsee\tVERB\tVB\t_\t_\t_\t0:root\t_
5\tdogs\tdog\tNOUN\tNNS\t_\t4\tobj\t_\tSpaceAfter=No
6\t.\t.\tPUNCT\t.\t_\t4\tpunct\t_\t_

1\tdogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_
2\tsleep\tsleep\tVERB\tVBP\t_\t0\troot\t_\t_

"""

WORDS = ["She", "ca", "n't", "see", "dogs", ".", "dogs", "sleep"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("parse")
    train_one(settings("tagging", PT, size=100), path / "pt")
    train_one(settings("tagging", {**TRANSFORMER, "layers": 2}, size=100), path / "transformer")
    (path / "gold.conllu").write_text(TREEBANK)
    (path / "bare.conllu").write_text("# sent_id = w-1\n1\tdogs\t_\t_\t_\t_\t_\t_\t_\t_\n\n")
    (path / "empty.conllu").write_text("\n# text =\n\n")
    return path


def words_of(text):
    return [[t for t in block if isinstance(t["id"], int)] for block in conllu.parse(text)]


@pytest.mark.parametrize(("run", "decoder"), [("pt", "tree"), ("transformer", "projective")])
def test_the_command(folder, run, decoder):
    """The figures are those of the file that it writes, counted by another reader."""
    out = f"{run}/deep/out.conllu"
    command = ["parse", run, "gold.conllu", "--decoder", decoder, "--channel", 0, "--out", out]
    command.append("--every-iteration")
    done = probformer(*command, cwd=folder)
    unknown = load_run(folder / run).vocabulary.count_unknown(WORDS)
    assert f"2 sentences, 8 words ({unknown} unknown)" in done.stdout
    step, other = ("layer", "iteration") if run == "transformer" else ("iteration", "layer")
    assert f"UAS / UUAS by {step}, %" in done.stdout
    assert other not in done.stdout
    written = (folder / out).read_text()
    pairs = list(zip(TREEBANK.splitlines(), written.splitlines(), strict=True))
    for before, after in pairs:
        fields, others = before.split("\t"), after.split("\t")
        assert fields[:6] + fields[9:] == others[:6] + others[9:]
        assert fields == others or fields[0].isdigit()
    right = total = found = arcs = lost = 0
    for gold, heads in zip(words_of(TREEBANK), words_of(written), strict=True):
        edges = {frozenset((t["id"], t["head"])) for t in heads}
        assert sum(t["head"] == 0 for t in heads) == 1
        moved = any(a["head"] != b["head"] for a, b in zip(gold, heads, strict=True))
        assert [t["deps"] for t in heads] == [None if moved else t["deps"] for t in gold]
        lost += moved and any(t["deps"] for t in gold)
        for a, b in zip(gold, heads, strict=True):
            right, total = right + (a["head"] == b["head"]), total + 1
            new = "dep" if b["head"] else "root"
            assert b["deprel"] == (a["deprel"] if a["head"] == b["head"] else new)
            if a["head"]:
                found, arcs = found + (frozenset((a["id"], a["head"])) in edges), arcs + 1
    again = probformer(*command, "--json", cwd=folder)
    assert lost, "the heads of the one sentence with enhanced dependencies change"
    assert again.stderr.startswith(f"the trees are in {out}, ")
    check_wording(again.stderr.replace(run, "RUN"), "enhanced dependencies", "1 sentence")
    figures = json.loads(again.stdout)
    assert (figures["channel"], figures["unknown"]) == (0, unknown)
    assert figures[step] == len(figures[f"{step}s"])
    assert other not in figures
    assert figures["channels"][0]["uas"] == right / total
    assert figures["channels"][0]["uuas"] == found / arcs
    assert f"{100 * right / total:.1f}" in next(
        line for line in done.stdout.splitlines() if "channel 0" in line
    )
    assert list(SentenceFile(folder / out, "conllu"))
    table = TESTS.parent / "benchmarks/structure_table.py"
    printed = [re.split(r"\s*│\s*", line) for line in done.stdout.splitlines()]
    for row in runpy.run_path(str(table))["markdown"](figures).splitlines()[2:]:
        assert re.split(r"\s*\|\s*", row) in printed


@pytest.mark.parametrize("split", [None, "dev"])
def test_a_split_of_the_run(folder, split):
    """What it writes can be parsed again, to the same trees."""
    asked = ["--split", split] if split else []
    done = probformer("parse", "pt", *asked, "--channel", "best", "--out", "s.conllu", cwd=folder)
    expected = list(builtin_corpus(100)[split or "test"])
    assert f"{len(expected)} sentences" in done.stdout
    trees = list(SentenceFile(folder / "s.conllu", "conllu"))
    assert [tree.words for tree in trees] == [sentence.words for sentence in expected]
    assert trees[0].columns["upos"] == expected[0].columns["upos"]
    again = probformer("parse", "pt", "s.conllu", "--channel", "best", "--json", cwd=folder)
    figures = json.loads(again.stdout)
    assert figures["channels"][figures["channel"]]["uas"] == 1


@pytest.mark.parametrize(
    ("file", "options", "named"),
    [
        ("bare.conllu", {}, "bare.conllu:2 (sentence w-1): "),
        ("empty.conllu", {}, "empty.conllu"),
        ("nothing.conllu", {}, "nothing.conllu"),
        ("gold.conllu", {"channel": 2}, "channel 2"),
        ("gold.conllu", {"iteration": 0}, "iteration 0"),
        ("gold.conllu", {"decoder": "argmax"}, "decoder"),
    ],
)
def test_what_is_refused(folder, file, options, named):
    out = folder / "refused.conllu"
    with refused(named):
        parse_file(
            load_run(folder / "pt"), folder / file, folder, ParserOptions(**options), out=out
        )
    assert not out.exists()


@pytest.mark.parametrize("command", [("parse",), ("describe", "--out", "page")])
def test_a_sentence_that_is_too_long_is_named(folder, command):
    positions = {**TRANSFORMER, "positions": "learned", "max_length": 45, "relative": "none"}
    if not (folder / "learned").exists():
        train_one(settings("tagging", positions, epochs=1), folder / "learned")
    line = "{}\ta\t_\tX\tX\t_\t{}\tdep\t_\t_\n"
    long = "".join(line.format(at, at - 1) for at in range(1, 47))
    (folder / "long.conllu").write_text(f"{TREEBANK.strip()}\n\n{long}\n")
    name, *options = command
    done = probformer(name, "learned", "long.conllu", *options, cwd=folder, check=2)
    place = f"long.conllu:{len(TREEBANK.strip().splitlines()) + 2}"
    check_wording(done.stderr, place, "46", "45")
    assert not (folder / "page").exists()


def test_a_file_or_a_split(folder):
    done = probformer("parse", "pt", "gold.conllu", "--split", "dev", cwd=folder, check=2)
    check_wording(done.stderr, "--split")
    with refused("gen"):
        parse_file(load_run(folder / "pt"), None, folder, ParserOptions(), "gen")


@pytest.mark.parametrize(
    ("out", "named"),
    [
        ("gold.conllu", "gold.conllu"),
        ("pt", "pt: "),
        ("bare.conllu/x", "bare.conllu/x"),
    ],
)
def test_where_trees_cannot_go_is_said_before_parsing(folder, out, named, monkeypatch):
    monkeypatch.setattr(command, "parse_sentences", lambda *_: pytest.fail("parsed"))
    with refused(named):
        parse_file(
            load_run(folder / "pt"),
            folder / "gold.conllu",
            folder,
            ParserOptions(),
            out=folder / out,
        )
    assert (folder / "gold.conllu").read_text() == TREEBANK


def test_gold_data_of_the_run_is_not_overwritten(tmp_path):
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.conllu").write_text(TREEBANK)
    data = {"kind": "files", "format": "conllu"}
    data |= {split: f"{split}.conllu" for split in ("train", "dev", "test")}
    given = replace(settings("tagging", PT), data=from_dict(FileData, data))
    train_one(given, tmp_path / "run", tmp_path)
    out = tmp_path / "test.conllu"
    with refused("--out"):
        parse_file(load_run(tmp_path / "run"), None, tmp_path, ParserOptions(), out=out)
    assert out.read_text() == TREEBANK


def test_the_command_refuses_in_one_sentence(folder):
    done = probformer("parse", "pt", "gold.conllu", "--decoder", "best", cwd=folder, check=2)
    check_wording(done.stderr, "error: decoder")


@pytest.mark.long
def test_without_heads_to_learn_from(tmp_path):
    """The bundled masked language model, with less training."""
    changes = ["data.size=1000", "training.epochs=3"]
    train_one(read_settings("mlm-builtin-pt", changes), tmp_path / "run")
    done = probformer("parse", "run", "--json", "--every-iteration", cwd=tmp_path)
    ways = json.loads(done.stdout)["ways"]
    for way in (AVERAGE, "best channel", ANY, LEFT, RIGHT, RANDOM):
        assert 0 < ways[way]["uuas"] < 1
        assert 0 < ways[way]["uas"] <= ways[way]["uuas"] + 0.1  # the root has no arc to a word


@pytest.mark.long
def test_gold_heads_make_a_parser(tmp_path):
    changes = ["training.gold_heads.channel=1", "data.size=4000", "training.epochs=10"]
    train_one(read_settings("tagging-builtin-pt", changes), tmp_path / "run")
    figures = json.loads(probformer("parse", "run", "--json", cwd=tmp_path).stdout)
    assert figures["best_channel"] == 1
    assert figures["channels"][1]["uas"] > 0.8


def test_trees_need_a_file_that_can_be_read_twice(folder):
    command = ("parse", "pt", "/dev/stdin", "--out", "x.conllu")
    done = probformer(*command, cwd=folder, check=2)
    check_wording(done.stderr, "/dev/stdin", "--out")
