"""`probformer parse` with a parser: what it writes, read by another library, and what it keeps."""

import json
import re
from dataclasses import replace

import conllu
import pytest
import torch
from typer.testing import CliRunner

from helpers.commands import probformer
from helpers.messages import check_wording, refused
from helpers.runs import PT, TRANSFORMER, saved, settings
from probformer.cli import app
from probformer.cli.errors import _report_errors
from probformer.config import ParsingSettings
from probformer.crf.structures import SpanningTrees
from probformer.data.builtin import builtin_corpus
from probformer.data.formats.conllu import sentence_in
from probformer.data.sentence import Sentence
from probformer.runs import parsing
from probformer.runs.parsing import ParseOptions, predict_parses
from probformer.runs.run_folder import load_run
from probformer.sentinels import ROOT, UNOBSERVED
from probformer.training.commands import train_one

TREEBANK = """\
# newdoc id = d
# sent_id = 1
# text = She can't see dogs.
1\tShe\tshe\tX\tY\tCase=Nom|Number=Sing\t4\tnsubj\t4:nsubj\t_
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\tStart=4|End=9
2\tca\tcan\tX\tY\t_\t_\t_\t_\tLemma=can|HeadProb=x|Z
3\tn't\tnot\tX\tY\tPolarity=Neg\t4\tunheard:of\t4:advmod\t_
4\tsee\tsee\tX\tY\t_\t0\troot\t0:root\t_
4.1\tsee\tsee\tX\tY\t_\t_\t_\t0:root\tCopyOf=4
5\tdogs\tdog\tX\tY\tNumber=Plur\t_\t_\t_\tSpaceAfter=No
6\t.\t.\tX\tY\t_\t4\tpunct\t_\t_


# a comment alone

# sent_id = 2
1\tdogs\tdog\tX\tY\t_\t_\t_\t_\t_
2\tsleep\tsleep\tX\tY\t_\t_\t_\t_\tSpaceAfter=No
# after the words
"""
GIVEN = (3, UNOBSERVED, 3, ROOT, UNOBSERVED, 3)
LINE = "{}\t{}\t_\t_\t_\t_\t{}\t{}\t_\t_\n".format
LONG = " ".join(["the dogs sleep"] * 55)  # 165 words
RUNS = {
    "tree": ({**PT, "inference": {"iterations": 2, "heads": "tree"}}, {}),
    "rows": (PT, {"single_root": False}),
    "transformer": (TRANSFORMER, {"heads": "projective", "decoder": "mbr"}),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("parse_text")
    for name, (encoder, task) in RUNS.items():
        given = settings("tagging", encoder, size=100)
        task = ParsingSettings(tags=("upos", "xpos"), **task)
        train_one(replace(given, task=task), path / name)
    saved(path / "tagging")
    (path / "gold.conllu").write_text(TREEBANK, encoding="utf-8")
    return path


@pytest.fixture
def parse(folder, monkeypatch):
    """Runs the command in this process: its standard output, after a check of the exit status."""
    monkeypatch.chdir(folder)

    def run(*arguments, text=None, status=0, notes=False):
        done = CliRunner().invoke(app, ["parse", *map(str, arguments)], input=text)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            with pytest.raises(SystemExit) as stop:
                _report_errors(lambda: (_ for _ in ()).throw(done.exception))
            assert stop.value.code == status, done.exception
            return str(done.exception)
        assert done.exit_code == status, done.output
        return done.stderr if notes else done.stdout

    return run


def blocks_of(text):
    """The sentences with words, as another library reads them."""
    return [block for block in conllu.parse(text) if block]


def words_of(text):
    return [[t for t in block if isinstance(t["id"], int)] for block in blocks_of(text)]


def heads_of(text):
    return [[t["head"] - 1 for t in sentence] for sentence in words_of(text)]


def is_tree(heads, single_root=True):
    return heads.count(ROOT) >= 1 and SpanningTrees(single_root).fault(heads) is None


def of_python(folder, name, sentence, **options):
    """The parses of a sentence by the API of Python."""
    (found,) = predict_parses(load_run(folder / name), [sentence], ParseOptions(**options))
    return found


def gold_sentence(with_heads=True):
    lines = TREEBANK.split("\n\n")[0].splitlines()
    return sentence_in(enumerate(lines, start=1), with_heads)


@pytest.mark.parametrize("name", ["tree", "rows", "transformer"])
def test_what_is_not_predicted_stays_byte_for_byte(folder, parse, name):
    written = parse(name, "gold.conllu")
    before, after = TREEBANK.splitlines(), written.splitlines()
    assert after[len(before) :] == [""], "a blank line ends the last sentence"
    for old, new in zip(before, after, strict=False):
        old, new = old.split("\t"), new.split("\t")
        if re.fullmatch(r"\d+", old[0]):
            assert old[:3] + old[5:6] + old[9:] == new[:3] + new[5:6] + new[9:]
            assert {new[3], new[4]}.isdisjoint("XY_")
        else:
            assert old == new
    for sentence, heads in zip(words_of(written), heads_of(written), strict=True):
        assert is_tree(heads, name != "rows")
        assert all(t["deprel"] not in (None, "_") for t in sentence)
    first = words_of(written)[0]
    (parse_,) = of_python(folder, name, gold_sentence(with_heads=False))
    assert [t["head"] - 1 for t in first] == parse_.heads
    assert [t["deprel"] for t in first] == parse_.labels
    assert [t["upos"] for t in first] == parse_.tags["upos"]
    assert [t["xpos"] for t in first] == parse_.tags["xpos"]


def test_enhanced_dependencies_are_dropped_where_heads_change(parse):
    assert heads_of(parse("tree", "gold.conllu"))[0] != [*GIVEN]
    assert "4:nsubj" not in parse("tree", "gold.conllu")
    notes = parse("tree", "gold.conllu", notes=True).splitlines()
    check_wording(notes[-1], "DEPS", "1 sentence")
    check_wording(notes[0], "unknown words")
    same = parse("tree", text=parse("tree", "the dogs sleep"), notes=True)
    assert "DEPS" not in same


@pytest.mark.parametrize("heads", ["_", "0", "x"])
def test_heads_of_the_input_do_not_matter(parse, heads):
    """They may be missing or wrong."""
    words = ["the", "dogs", "sleep"]
    text = "".join(LINE(i, word, heads, "_") for i, word in enumerate(words, 1))
    assert heads_of(parse("tree", text=text)) == heads_of(parse("tree", "the dogs sleep"))


def test_words_from_the_command_line_from_files_and_from_standard_input(folder, parse):
    """Standard input in processes of their own, which read and write bytes."""
    sentences = ["the dogs sleep .", LONG, "she sleeps — ü"]
    said = parse("tree", *sentences)
    assert [[t["form"] for t in s] for s in words_of(said)] == [s.split() for s in sentences]
    assert all(map(is_tree, heads_of(said)))
    (folder / "sentences.txt").write_text("\n\n".join(sentences), encoding="utf-8")
    assert parse("tree", "sentences.txt") == said
    piped = probformer("parse", "tree", cwd=folder, text="\n".join(sentences) + "\n")
    assert piped.stdout == said
    assert probformer("parse", "tree", "-", cwd=folder, text=said).stdout == said
    assert parse("tree", "sentences.txt", "--out", "new/out.conllu") == ""
    assert (folder / "new" / "out.conllu").read_text(encoding="utf-8") == said
    assert [path.name for path in (folder / "new").iterdir()] == ["out.conllu"]


def test_sentences_and_files_together(parse):
    both = parse("tree", "she sleeps", "gold.conllu", "-", text="the dogs sleep\n")
    assert [len(sentence) for sentence in words_of(both)] == [2, 6, 2, 3]


def test_batches_and_windows_do_not_change_what_is_found(folder, monkeypatch):
    run = load_run(folder / "tree")
    words = [tuple(LONG.split()[: 1 + 7 * at % 20]) for at in range(23)]
    sentences = [Sentence(own) for own in words]
    alone = [of_python(folder, "tree", sentence)[0].heads for sentence in sentences[:3]]
    found = [parse.heads for (parse,) in predict_parses(run, sentences)]
    assert found[:3] == alone
    assert list(map(len, found)) == list(map(len, words))
    monkeypatch.setattr(parsing, "_WINDOW", 5)
    monkeypatch.setattr(parsing, "_MAX_NUMBERS", 1)
    read = []
    lazily = predict_parses(run, (read.append(s) or s for s in sentences))
    assert next(lazily)[0].heads == found[0]
    assert len(read) == 5
    assert [parse.heads for (parse,) in lazily] == found[1:]


@pytest.mark.parametrize("name", ["tree", "rows", "transformer"])
def test_given_heads_are_kept_and_the_rest_completed(folder, parse, name):
    written = parse(name, "gold.conllu", "--keep-heads", "--probabilities")
    sentence = words_of(written)[0]
    heads = [t["head"] - 1 for t in sentence]
    assert is_tree(heads, name != "rows")
    (free,) = of_python(folder, name, gold_sentence(with_heads=False))
    assert free.heads != heads
    for token, given, label in zip(sentence, GIVEN, gold_sentence().columns["deprel"], strict=True):
        if given != UNOBSERVED:
            assert (token["head"] - 1, token["deprel"]) == (given, label)
            assert token["misc"]["HeadProb"] == token["misc"]["LabelProb"] == "1.0000"
        else:
            assert token["deprel"] != "_"
            assert float(token["misc"]["HeadProb"]) <= 1
    assert sum(float(t["misc"]["HeadProb"]) < 0.99995 for t in sentence) == 2
    line = TREEBANK.splitlines()[3]
    assert "4:nsubj" not in written, "dropped, as two words have got heads"
    whole = "# sent_id = 2\n" + line.replace("\t4\t", "\t0\t") + "\n"
    assert parse(name, "--keep-heads", text=whole).split("\t")[6:9] == ["0", "nsubj", "4:nsubj"]


@pytest.mark.parametrize("name", ["tree", "rows"])
def test_labels_hear_of_given_heads(folder, name):
    """Evidence changes what is inferred of the other words, beyond the set of allowed trees."""
    run, given = load_run(folder / name), gold_sentence()
    (parse,) = predict_parses(run, [given], ParseOptions(keep_heads=True))
    words = torch.tensor([run.vocabulary.encode(given.words).ids])
    mask = torch.ones_like(words, dtype=torch.bool)
    with torch.no_grad():
        output = run.model(words, mask, attention=True)
        unaware = run.task.distribution(output, mask).given(torch.tensor([GIVEN])).best()[0]
    assert parse[0].head_probabilities[1] != pytest.approx(unaware.head_probabilities[1], rel=1e-4)
    certain = parse[0].tag_probabilities["upos"]
    assert certain != pytest.approx(unaware.tag_probabilities["upos"], rel=1e-4)


def test_samples_are_trees_as_frequent_as_probable(folder, parse):
    sentence, count = "she saw the dogs", 400
    written = parse("tree", sentence, "--sample", count, "--seed", 1, "--probabilities")
    assert parse("tree", sentence, "--sample", count, "--seed", 1, "--probabilities") == written
    assert parse("tree", sentence, "--sample", count, "--probabilities") != written
    blocks = blocks_of(written)
    assert [block.metadata["sample"] for block in blocks] == [str(k + 1) for k in range(count)]
    trees = heads_of(written)
    assert all(map(is_tree, trees))
    labels = [[t["deprel"] for t in block] for block in blocks]
    probabilities = {}
    for heads, own, block in zip(trees, labels, blocks, strict=True):
        for word, (head, label) in enumerate(zip(heads, own, strict=True)):
            misc = block[word]["misc"]
            p = float(misc["HeadProb"])
            probabilities[word, head] = p
            probabilities[word, head, label] = p * float(misc["LabelProb"])
    assert len({key for key in probabilities if len(key) == 2}) > 4
    for (word, head, *label), p in probabilities.items():
        pairs = zip(trees, labels, strict=True)
        found = sum(h[word] == head and label in ([], [own[word]]) for h, own in pairs)
        assert abs(found / count - p) < 5 * (p * (1 - p) / count) ** 0.5 + 0.01
    several = parse("tree", "gold.conllu", "--sample", 2, "--keep-heads")
    assert [block.metadata.get("sent_id") for block in blocks_of(several)] == [*"1122"]
    for heads in heads_of(several)[:2]:
        assert all(a in (UNOBSERVED, b) for a, b in zip(GIVEN, heads, strict=True))


def test_independent_heads_are_drawn_as_trees(parse):
    drawn = heads_of(parse("rows", "she saw the dogs", "--sample", 100))
    assert len(drawn) == 100
    assert all(is_tree(heads, single_root=False) for heads in drawn)


@pytest.mark.parametrize("name", ["tree", "transformer"])
def test_json_has_what_python_finds(folder, parse, name):
    lines = parse(name, "gold.conllu", "she sleeps", "--json").splitlines()
    first, second, third = map(json.loads, lines)
    assert (first["id"], second["id"], "id" in third) == ("1", "2", False)
    assert third["words"] == ["she", "sleeps"]
    (own,) = of_python(folder, name, gold_sentence(with_heads=False))
    assert first["heads"] == own.heads
    assert first["labels"] == own.labels
    assert first["tags"] == own.tags
    for found in ("head_probabilities", "label_probabilities"):
        assert first[found] == pytest.approx(getattr(own, found), abs=1e-6)
    assert set(first["tag_probabilities"]) == {"upos", "xpos"}
    sampled = parse(name, "she sleeps", "--json", "--sample", 2).splitlines()
    assert [json.loads(line)["sample"] for line in sampled] == [1, 2]


@pytest.mark.parametrize("name", ["tree", "transformer"])
def test_probabilities_in_misc_are_those_of_python(folder, parse, name):
    (own,) = of_python(folder, name, gold_sentence(with_heads=False))
    expected = {"HeadProb": own.head_probabilities, "LabelProb": own.label_probabilities}
    expected |= {f"{tags.capitalize()}Prob": p for tags, p in own.tag_probabilities.items()}
    tokens = words_of(parse(name, "gold.conllu", "--probabilities"))[0]
    for entry, p in expected.items():
        assert [float(t["misc"][entry]) for t in tokens] == pytest.approx(p, abs=5.1e-5)
    assert [*tokens[1]["misc"]] == ["Lemma", "HeadProb", "Z", "LabelProb", "UposProb", "XposProb"]
    assert tokens[4]["misc"]["SpaceAfter"] == "No"


def test_decoders(folder, parse):
    """That of the settings, or another one; only argmax may find no tree."""
    assert parse("tree", LONG) == parse("tree", LONG, "--decoder", "tree")
    assert parse("transformer", LONG) == parse("transformer", LONG, "--decoder", "mbr")
    for decoder in ("tree", "mbr", "projective"):
        (heads,) = heads_of(parse("tree", LONG, "--decoder", decoder))
        assert is_tree(heads)
    found = json.loads(parse("tree", LONG, "--decoder", "argmax", "--json"))
    best = json.loads(parse("tree", LONG, "--decoder", "mbr", "--json"))
    pairs = zip(found["head_probabilities"], best["head_probabilities"], strict=True)
    assert all(a >= b - 1e-6 for a, b in pairs)
    assert found["heads"] != best["heads"]


def test_a_split_of_the_run(parse):
    written = parse("tree", "--split", "dev")
    sentences = list(builtin_corpus(100)["dev"])
    assert [[t["form"] for t in s] for s in words_of(written)] == [[*s.words] for s in sentences]
    gold = parse("tree", "--split", "dev", "--keep-heads")
    assert heads_of(gold) == [[*sentence.heads] for sentence in sentences]
    labels = [[t["deprel"] for t in sentence] for sentence in words_of(gold)]
    assert labels == [[*sentence.columns["deprel"]] for sentence in sentences]


def conllu_of(*heads):
    labels = ["_" if head == "_" else "dep" for head in heads]
    rows = (LINE(i, "dogs", *own) for i, own in enumerate(zip(heads, labels, strict=True), 1))
    return "# sent_id = s-1\n# text = x\n" + "".join(rows) + "\n"


@pytest.mark.parametrize(
    ("name", "heads", "options", "named"),
    [
        ("tree", (2, 1), [], (":3 ", "word 1", "cycle")),
        ("tree", ("_", 3, 4, 2), [], (":4 ", "word 2", "cycle")),
        ("tree", (0, "_", 0), [], (":5 ", "word 3", "'dogs'", "ROOT")),
        ("tree", (1, 0), [], (":3 ", "word 1", "itself")),
        ("tree", (9, 0), [], (":3 ", "9", "0 to 2")),
        ("tree", ("x", 0), [], (":3 ", "'x'", "0 to 2")),
        ("transformer", (3, 4, 0, "_"), [], (":3 ", "word 1", "crosses")),
        ("tree", (3, 4, 0, "_"), ["--decoder", "projective"], (":3 ", "word 1", "crosses")),
        ("transformer", ("_", 3, 0, 1), [], (":5 ", "word 3", "below")),
    ],
)
def test_given_heads_that_no_tree_has(folder, parse, name, heads, options, named):
    """Without --keep-heads it does not matter that they are wrong."""
    (folder / "bad.conllu").write_text(conllu_of(*heads))
    said = parse(name, "bad.conllu", "--keep-heads", *options, status=2)
    check_wording(said, "bad.conllu", "sentence s-1", *named)
    assert is_tree(heads_of(parse(name, "bad.conllu", *options))[0])


def test_several_roots_may_be_given_where_a_run_allows_them(parse):
    text = conllu_of(0, "_", 0)
    (heads,) = heads_of(parse("rows", "--keep-heads", text=text))
    assert heads[0] == heads[2] == ROOT


@pytest.mark.parametrize(
    ("arguments", "text", "named"),
    [
        (["tree", "nothing.conllu"], None, ["nothing.conllu"]),
        (["tree", "she sleeps", "nothing.txt"], None, ["nothing.txt"]),
        (["tree", "tagging"], None, ["tagging", "folder"]),
        (["tree", "empty.conllu"], None, ["empty.conllu"]),
        (["tree"], "\n", ["standard input"]),
        (["tree", " "], None, ["words"]),
        (["tree"], "# a comment\nshe sleeps\n", ["standard input:2", "10"]),
        (["tree", "she sleeps", "--split", "dev"], None, ["--split"]),
        (["tree", "--split", "all"], None, ["split", "'all'"]),
        (["tree", "she sleeps", "--decoder", "best"], None, ["decoder", "'best'"]),
        (["tree", "she sleeps", "--decoder", "argmax"], None, ["argmax", "--json"]),
        (["tree", "she sleeps", "--decoder", "mbr", "--sample", 2], None, ["decoder", "samples"]),
        (["tree", "she sleeps", "--sample", 0], None, ["sample", "0"]),
        (["tree", "she sleeps", "--seed", 1], None, ["--seed", "--sample"]),
        (["tree", "she sleeps", "--json", "--probabilities"], None, ["--probabilities"]),
        (["tree", "she sleeps", "--many-roots"], None, ["--many-roots", "--channel"]),
        (["tree", "she sleeps", "--iteration", 1], None, ["--iteration", "--channel"]),
        (["tree", "--channel", 0, "--keep-heads"], None, ["--keep-heads", "--channel"]),
        (["tree", "--every-iteration", "--sample", 1], None, ["--sample", "--every-iteration"]),
        (["tagging", "--keep-heads"], None, ["--keep-heads", "'parsing'", "'tagging'"]),
        (["tagging", "--probabilities"], None, ["--probabilities", "'parsing'", "'tagging'"]),
        (["tagging", "--sample", 2], None, ["--sample", "'parsing'", "'tagging'"]),
        (["tagging", "--decoder", "mbr"], None, ["decoder", "'mbr'"]),
        (["tagging", "gold.conllu", "gold.conllu"], None, ["one file", "2"]),
        (["tree", "gold.conllu", "--out", "gold.conllu"], None, ["gold.conllu", "--out"]),
        (["tree", "gold.conllu", "--out", "tagging"], None, ["tagging", "folder"]),
    ],
    ids=lambda x: " ".join(map(str, x)) if isinstance(x, list) else "",
)
def test_what_is_refused(folder, parse, arguments, text, named):
    (folder / "empty.conllu").write_text("\n# a comment\n\n")
    said = parse(*arguments, text=text, status=2)
    check_wording(said, *named)
    assert (folder / "gold.conllu").read_text(encoding="utf-8") == TREEBANK


def test_an_error_leaves_no_part_of_a_file(folder, parse):
    (folder / "late.conllu").write_text(conllu_of("_") * 3 + "1\tx\n")
    check_wording(parse("tree", "late.conllu", "--out", "late.out", status=2), "late.conllu:13")
    assert not list(folder.glob("late.out*"))


def test_only_parsers_predict_parses(folder):
    with refused("'parsing'", "'tagging'"):
        next(predict_parses(load_run(folder / "tagging"), [Sentence(("a",))]))


def test_the_heads_of_a_parsers_channels_are_scored_when_asked_for(parse):
    figures = json.loads(parse("tree", "--channel", 0, "--json", "--split", "dev"))
    assert figures["channel"] == 0
    both = json.loads(parse("tree", "--every-iteration", "--json", "--iteration", 1))
    assert len(both["iterations"]) == 2


def test_tags_that_conllu_has_no_column_for(folder, parse):
    task = ParsingSettings(tags=("entity",))
    if not (folder / "entities").exists():
        train_one(
            replace(settings("tagging", PT, size=50, epochs=1), task=task), folder / "entities"
        )
    check_wording(parse("entities", "the dogs", notes=True), "entity", "--json")
    assert json.loads(parse("entities", "the dogs", "--json"))["tags"]["entity"]
