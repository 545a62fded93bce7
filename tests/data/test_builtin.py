"""The built-in corpus: the same everywhere, well-formed, and not to be had from words alone."""

import hashlib
import math
import os
import re
import subprocess
import sys
import tracemalloc
from collections import Counter, defaultdict
from functools import cache
from itertools import islice, pairwise

import numpy as np
import pytest

from helpers.messages import refused
from probformer.data.builtin import BuiltinSplit, builtin_cogs, builtin_corpus, lexicon
from probformer.data.builtin.generalisations import GENERALISATIONS
from probformer.data.builtin.inflection import Verb, with_s
from probformer.data.builtin.logical_forms import PREPOSITIONS
from probformer.data.cogs import form_from_tags, tags_from_form
from probformer.data.sentence import Sentence
from probformer.sentinels import ROOT

OPEN = {"ADJ", "ADV", "NOUN", "PROPN", "VERB"}
UPOS = OPEN | {"ADP", "AUX", "CCONJ", "DET", "PART", "PRON", "PUNCT", "SCONJ"}
VERBAL = {"MD", "TO", "VB", "VBD", "VBG", "VBN", "VBP", "VBZ"}
NOMINAL_TAGS = {"DT", "NN", "NNP", "NNS", "POS", "PRP", "PRP$", "WDT", "WP"}
XPOS = VERBAL | NOMINAL_TAGS | {",", ".", "CC", "IN", "JJ", "RB", "RP", "WRB"}
NOMINAL = {"NOUN", "PROPN", "PRON"}
PREDICATE = {"VERB", "ADJ"}
RELATIONS = {
    *("acl", "acl:relcl", "advcl", "advmod", "amod", "aux", "aux:pass", "case", "cc", "ccomp"),
    *("compound", "compound:prt", "conj", "cop", "det", "flat", "iobj", "mark", "nmod"),
    *("nmod:poss", "nsubj", "nsubj:pass", "obj", "obl", "obl:agent", "parataxis", "punct", "root"),
    "xcomp",
}
ENTITY = re.compile(r"(?:S-(\w+) |B-(\w+) (?:I-\2 )*E-\2 |O )+")


@cache
def corpus():
    return builtin_corpus(4000, seed=1)


@cache
def unseen():
    """Sentences to measure baselines on, more than a test split has."""
    other = builtin_corpus(10_000, seed=2)
    return [*other["dev"], *other["test"]]


@cache
def cogs():
    return builtin_cogs(4000, seed=1)


def sentences():
    return [s for split in corpus().values() for s in split]


def children(s, i):
    return [j for j, head in enumerate(s.heads) if head == i]


def root(s):
    return s.heads.index(ROOT)


def conjuncts(s, i):
    """Dependents that a conjunction coordinates with word i."""
    return [j for j in children(s, i) if any(s.columns["xpos"][k] == "CC" for k in children(s, j))]


# The same everywhere


DIGEST = """
import hashlib
from probformer.data.builtin import builtin_cogs, builtin_corpus
splits = [*builtin_corpus(200).values(), *builtin_cogs(200).values()]
digest = hashlib.sha256(repr([list(split) for split in splits]).encode()).hexdigest()
"""


def test_another_process_draws_the_same_without_torch_or_numpy():
    here = {}
    exec(DIGEST, here)
    code = DIGEST + 'import sys\nprint(digest)\nassert not {"torch", "numpy"} & set(sys.modules)'
    for salt in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": salt}
        command = [sys.executable, "-c", code]
        run = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        assert run.stdout.strip() == here["digest"]


def test_sentences_are_those_of_earlier_versions():
    """All but the relations, which came later; figures in the documentation are of these."""
    found = hashlib.sha256()
    for split in builtin_corpus(2000, seed=7).values():
        for s in split:
            columns = [s.columns[name] for name in ("upos", "xpos", "entity")]
            found.update(repr((s.words, columns, s.heads, s.label)).encode())
    assert found.hexdigest() == "94ab1e14b79c372f4bdfba8062cdc4c76459e15e65c47197f820afa066381f22"


@pytest.mark.parametrize("make", [builtin_corpus, builtin_cogs])
def test_a_larger_corpus_begins_with_the_smaller(make):
    small, large, streamed = make(100), make(300), make(25_000)
    for split, drawn in small.items():
        assert list(islice(large[split], len(drawn))) == list(drawn)
        assert len(large[split]) > len(drawn)
    assert list(islice(streamed["train"], 300)) == list(large["train"])


@pytest.mark.parametrize("make", [builtin_corpus, builtin_cogs])
def test_sizes_seeds_and_disjoint_splits(make):
    made = make(400)
    assert [len(made[split]) for split in ("train", "dev", "test")] == [400, 50, 50]
    assert all(len(list(split)) == len(split) for split in made.values())
    assert all(len(split) > 0 for split in make(9).values())
    assert list(make(400, seed=1)["train"]) != list(made["train"])
    words = {split: {s.words for s in made[split]} for split in made}
    for one, other in ((a, b) for a in made for b in made if a < b):
        assert not words[one] & words[other]


@pytest.mark.parametrize("arguments", [{"size": 0}, {"size": 1.5}, {"seed": "1"}, {"seed": True}])
@pytest.mark.parametrize("make", [builtin_corpus, builtin_cogs])
def test_what_is_refused(make, arguments):
    with refused(next(iter(arguments))):
        make(**arguments)


def test_logical_forms_take_one_sentence_a_case_at_least():
    with refused("size"):
        builtin_cogs(8)


# Drawn when asked for


def counting(limit):
    """A split of three possible sentences that counts how many are drawn."""
    drawn = []

    def draw(random, place):
        drawn.append(place)
        return Sentence((random.choice("abc"),))

    return BuiltinSplit(limit, "counting", draw), drawn


def test_a_small_split_is_drawn_once_and_a_large_one_in_each_loop():
    split, drawn = counting(100)
    assert len(split) == 100
    assert drawn == []
    assert list(split) == list(split)
    assert len(drawn) == 100

    split, drawn = counting(30_000)
    assert list(split) == list(split)
    assert len(drawn) == 60_000


def test_a_split_without_repetition_ends_where_there_is_nothing_new():
    split = BuiltinSplit(
        7, "few", lambda random, _: Sentence((random.choice("abc"),)), distinct=True
    )
    assert {s.words[0] for s in islice(split, 3)} == set("abc")
    assert len(list(split)) == 7


@pytest.mark.parametrize("make", [builtin_corpus, builtin_cogs])
def test_a_million_sentences_need_no_memory(make):
    tracemalloc.start()
    made = make(10**6)
    for _ in islice(made["train"], 1500):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(made["train"]) == 10**6
    assert peak < 2**20


# Well-formed


def test_annotation_is_complete_and_from_closed_lists():
    seen = defaultdict(set)
    for s in sentences():
        assert set(s.columns) == {"upos", "xpos", "entity", "deprel"}
        assert {len(column) for column in s.columns.values()} == {len(s)} == {len(s.heads)}
        assert s.words[-1] in ".?"
        assert s.logical_form is None
        for name, column in s.columns.items():
            seen[name].update(column)
        seen["label"].add(s.label)
        for word, tag in zip(s.words, s.columns["xpos"], strict=True):
            assert word[0].isupper() == (tag == "NNP")
        for word, after in pairwise(s.words):
            assert (word == "an") <= (after[0] in "aeiou")
            assert (word == "a") <= (after[0] not in "aeiou")
    kinds = {f"{mark}-{kind}" for mark in "BES" for kind in ("PER", "LOC", "ORG")}
    assert seen["upos"] == UPOS
    assert seen["xpos"] == XPOS
    assert seen["entity"] == kinds | {"I-ORG", "O"}
    assert seen["deprel"] == RELATIONS
    assert seen["label"] == {"positive", "neutral", "negative"}


def test_trees_have_one_root_no_cycle_and_no_crossing():
    for s in sentences():
        assert s.heads.count(ROOT) == 1
        ancestors = []
        for i in range(len(s)):
            above, node = [], i
            while s.heads[node] != ROOT:
                node = s.heads[node]
                above.append(node)
                assert len(above) < len(s), "a cycle"
            ancestors.append(set(above))
        for i, head in enumerate(s.heads):
            for between in range(min(i, head) + 1, max(i, head)):
                assert head in (ROOT, between) or head in ancestors[between], s


def relations(s, i):
    """Those of the dependents of word i."""
    return {s.columns["deprel"][j] for j in children(s, i)}


def test_relations_fit_the_words_and_the_tree():
    """Where Universal Dependencies leaves no choice."""
    passive = {"aux:pass", "nsubj:pass"}
    for s in sentences():
        for i, relation in enumerate(s.columns["deprel"]):
            upos, xpos, word = (s.columns["upos"][i], s.columns["xpos"][i], s.words[i])
            head, below = s.heads[i], relations(s, i)
            above = "ROOT" if head == ROOT else s.columns["upos"][head]
            assert (relation == "root") == (head == ROOT)
            assert (relation == "punct") == (upos == "PUNCT")
            assert (relation == "cc") == (upos == "CCONJ")
            assert (relation == "det") == (upos == "DET")
            assert (relation == "compound:prt") == (xpos == "RP")
            assert (relation == "conj") == ("cc" in below)
            assert (relation in ("aux", "aux:pass", "cop", "parataxis")) == (upos == "AUX")
            assert relation != "cop" or above == "ADJ"
            assert relation not in passive or s.columns["xpos"][head] == "VBN"
            assert not ("nsubj" in below and "aux:pass" in below)
            assert relation not in ("nmod", "nmod:poss", "acl", "acl:relcl") or above != "VERB"
            assert relation not in ("obj", "iobj", "xcomp", "ccomp") or above == "VERB"
            assert relation not in ("obl", "obl:agent", "advcl") or above in PREDICATE
            assert relation != "obl:agent" or "by" in [s.words[j] for j in children(s, i)]
            assert relation not in ("obl", "nmod") or "case" in below
            assert word not in lexicon.NEGATORS or relation == "advmod"
            for once in ("nsubj", "obj", "iobj", "det", "cop", "aux:pass", "mark"):
                assert sum(s.columns["deprel"][j] == once for j in children(s, i)) < 2, (once, s)


@pytest.mark.parametrize("seed", range(3))
def test_every_relation_occurs_in_500_sentences(seed):
    drawn = builtin_corpus(500, seed)["train"]
    assert {relation for s in drawn for relation in s.columns["deprel"]} == RELATIONS


CHECKED = """
light/2/amod dislikes/4/nsubj are/4/cop light/0/root ./4/punct
Ford/2/compound Bank/4/nsubj was/4/cop open/0/root ./4/punct
she/3/nsubj:pass is/3/aux:pass blamed/0/root ill/3/advmod ./3/punct
they/3/nsubj:pass are/3/aux:pass praised/0/root by/5/case Georgia/3/obl:agent ./3/punct
has/3/aux Hudson/3/nsubj helped/0/root men/3/obj ?/3/punct
stews/2/nsubj scare/0/root Alice/2/obj Austin/3/flat ./2/punct
look/0/root over/1/compound:prt round/4/compound promises/1/obj ./1/punct
fly/0/root to/4/case that/4/det building/1/obl ./1/punct
Lincoln/2/nsubj mentored/0/root guards/2/obj off/5/case Florence/3/nmod ./2/punct
boss/0/root mentors/1/obj and/5/cc a/5/det guide/2/conj ./1/punct
make/0/root him/1/obj fool/1/xcomp Jordan/3/obj ./1/punct
hate/0/root that/4/mark he/4/nsubj supports/1/ccomp Sydney/4/obj ./1/punct
who/2/nsubj loved/0/root to/4/mark lend/2/xcomp her/4/iobj cans/4/obj ?/2/punct
Lincoln/2/nsubj roasts/0/root roasts/2/obj her/5/nmod:poss patient/6/nsubj \
trusted/3/acl:relcl ./2/punct
regrets/3/nsubj will/3/aux comfort/0/root a/5/det man/3/obj roasting/5/acl toasts/6/obj ./3/punct
you/3/nsubj were/3/cop cross/0/root ,/5/punct were/3/parataxis you/5/nsubj not/5/advmod ?/3/punct
are/4/cop some/3/det crosses/4/nsubj green/0/root although/7/mark wrongs/7/nsubj delight/4/advcl \
her/7/obj ?/4/punct
"""


def test_relations_are_those_checked_by_hand():
    """Word, id of the head, relation."""
    drawn = {s.words: s for s in builtin_corpus(2000)["train"]}
    for line in CHECKED.strip().splitlines():
        words, heads, relations = zip(*[field.split("/") for field in line.split()], strict=True)
        s = drawn[words]
        assert s.heads == tuple(int(head) - 1 for head in heads), line
        assert s.columns["deprel"] == relations, line


def test_names_are_well_formed_and_hang_together():
    for s in sentences():
        entities = s.columns["entity"]
        assert ENTITY.fullmatch(" ".join(entities) + " ")
        start = 0
        for i, (tag, entity) in enumerate(zip(s.columns["xpos"], entities, strict=True)):
            assert (tag == "NNP") <= (entity != "O")
            assert (entity != "O") <= (tag in ("NNP", "IN"))
            start = i if entity[0] in "BS" else start
            if entity[0] in "ES":
                outside = [j for j in range(start, i + 1) if not start <= s.heads[j] <= i]
                assert len(outside) == 1, "one word heads a name"


def test_lengths():
    lengths = sorted(len(s) for s in sentences())
    assert lengths[-1] <= 40
    assert sum(4 <= n <= 28 for n in lengths) > 0.9 * len(lengths)
    assert 11 < sum(lengths) / len(lengths) < 16
    assert 400 <= len({word for s in sentences() for word in s.words}) <= 600


@pytest.mark.parametrize(
    ("base", "forms"),
    [
        ("walk", "walks walked walked walking"),
        ("plan", "plans planned planned planning"),
        ("study", "studies studied studied studying"),
        ("play", "plays played played playing"),
        ("judge", "judges judged judged judging"),
        ("watch", "watches watched watched watching"),
        ("visit", "visits visited visited visiting"),
        ("fly", "flies flew flown flying"),
        ("cut", "cuts cut cut cutting"),
        ("have", "has had had having"),
        ("do", "does did done doing"),
    ],
)
def test_forms_of_verbs(base, forms):
    tags = ("VBZ", "VBD", "VBN", "VBG")
    assert [Verb(base).form(tag) for tag in tags] == forms.split()
    assert {Verb(base).form(tag) for tag in ("VB", "VBP")} == {base}


def test_forms_of_nouns():
    nouns = {"dog": "dogs", "box": "boxes", "watch": "watches", "study": "studies", "man": "men"}
    assert {noun: with_s(noun) for noun in nouns} == nouns


def subject(s, finite):
    """The word that the finite verb agrees with, and the predicate it is the subject of."""
    upos = s.columns["upos"]

    def nominals(i):
        marks = {k: {upos[m] for m in children(s, k)} for k in children(s, i)}
        return [k for k in marks if upos[k] in NOMINAL and "ADP" not in marks[k]]

    if upos[finite] == "AUX" and nominals(finite):  # a tag: "does it"
        return nominals(finite)[0], finite
    clause = finite if upos[finite] == "VERB" else s.heads[finite]
    while True:
        candidates = [k for k in nominals(clause) if k < clause]
        if candidates:
            inverted = [k for k in candidates if finite < k]
            before = [k for k in candidates if k < finite]
            return (inverted or before[-1:])[0], clause
        clause = s.heads[clause]  # the second of two verb phrases shares the subject of the first


def is_plural(s, noun, clause):
    tag, word, upos = s.columns["xpos"][noun], s.words[noun], s.columns["upos"]
    if any(upos[j] in NOMINAL for j in conjuncts(s, noun)):
        return True
    governor = s.heads[clause]
    if tag in ("WDT", "WP") and governor != ROOT and upos[governor] == "NOUN":
        return s.columns["xpos"][governor] == "NNS"
    return tag == "NNS" or word in ("they", "we", "you")


def test_verbs_agree_with_their_subjects():
    wanted = {"VBZ": False, "VBP": True}
    checked, across = Counter(), 0
    for s in sentences():
        for i, tag in enumerate(s.columns["xpos"]):
            form = {"was": "VBZ", "were": "VBP"}.get(s.words[i], tag)
            if form in wanted:
                noun, clause = subject(s, i)
                assert is_plural(s, noun, clause) == wanted[form], (s.words[i], s)
                checked[form] += 1
                other = "NN" if wanted[form] else "NNS"
                across += i > noun and other in s.columns["xpos"][noun + 1 : i]
    assert min(checked.values()) > 1000
    assert across > 50, "nouns of the other number stand in between"


# What the sentences are made of


def has_relative_clause(s, with_pronoun):
    upos, xpos = s.columns["upos"], s.columns["xpos"]
    for i in range(len(s)):
        if upos[i] in PREDICATE and 0 <= s.heads[i] < i and upos[s.heads[i]] == "NOUN":
            pronoun = any(xpos[k] in ("WDT", "WP") for k in children(s, i))
            if pronoun == with_pronoun:
                return True
    return False


def has_tag(tag):
    return lambda s: tag in s.columns["xpos"]


def has_passive(s):
    xpos, forms = s.columns["xpos"], {"be", "been", "is", "are", "was", "were"}
    return any(xpos[s.heads[i]] == "VBN" and word in forms for i, word in enumerate(s.words))


def has_coordination(kinds):
    def check(s):
        pairs = [(i, j) for i in range(len(s)) for j in conjuncts(s, i)]
        return any({s.columns["upos"][i], s.columns["upos"][j]} <= kinds for i, j in pairs)

    return check


def prepositions_deep(s):
    """How many prepositional phrases are inside each other."""
    tags = list(zip(s.columns["upos"], s.columns["xpos"], strict=True))
    marked = {s.heads[i] for i, tag in enumerate(tags) if tag == ("ADP", "IN")}

    def depth(i):
        return 1 + (depth(s.heads[i]) if s.heads[i] in marked else 0)

    return max(map(depth, marked), default=0)


def has_two_objects(s):
    upos = s.columns["upos"]

    def bare(j):
        marks = {upos[k] for k in children(s, j)}
        return upos[j] in NOMINAL and not marks & {"ADP", "CCONJ"}

    verbs = (i for i in range(len(s)) if upos[i] == "VERB")
    return any(sum(bare(j) for j in children(s, i) if j > i) == 2 for i in verbs)


CONSTRUCTIONS = {
    "relative clause": (lambda s: has_relative_clause(s, True), 0.1),
    "relative clause without pronoun": (lambda s: has_relative_clause(s, False), 0.1),
    "question": (lambda s: s.words[-1] == "?", 0.15),
    "wh-question": (lambda s: s.columns["xpos"][0] in ("WP", "WDT", "WRB"), 0.05),
    "tag question": (lambda s: s.words[-1] == "?" and "," in s.words[-5:], 0.01),
    "imperative": (lambda s: s.columns["xpos"][0] == "VB" and s.words[0] != "do", 0.02),
    "negation": (lambda s: bool(lexicon.NEGATORS & set(s.words)), 0.2),
    "modal": (has_tag("MD"), 0.1),
    "infinitive": (has_tag("TO"), 0.05),
    "participle": (has_tag("VBG"), 0.05),
    "particle": (has_tag("RP"), 0.03),
    "possessive": (has_tag("POS"), 0.1),
    "pronoun": (has_tag("PRP"), 0.1),
    "name": (has_tag("NNP"), 0.2),
    "adverb": (has_tag("RB"), 0.2),
    "passive": (has_passive, 0.1),
    "coordinated nouns": (has_coordination(NOMINAL), 0.05),
    "coordinated clauses or verb phrases": (has_coordination(PREDICATE), 0.15),
    "subordinate clause": (lambda s: "SCONJ" in s.columns["upos"], 0.1),
    "two prepositional phrases inside each other": (lambda s: prepositions_deep(s) >= 2, 0.1),
    "three prepositional phrases inside each other": (lambda s: prepositions_deep(s) >= 3, 0.02),
    "two objects": (has_two_objects, 0.01),
}


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_every_construction_is_frequent(name):
    check, least = CONSTRUCTIONS[name]
    share = sum(map(check, sentences())) / len(sentences())
    assert least < share < 0.75


# Words alone do not tell the tags


def tagged(split, column):
    for s in split:
        yield from zip(s.words, s.columns[column], s.columns["entity"], strict=True)


@cache
def tags_of_words(column):
    counts = defaultdict(Counter)
    for word, tag, _ in tagged(corpus()["train"], column):
        counts[word][tag] += 1
    return counts


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def is_most_frequent(column, word, tag):
    counts = tags_of_words(column)
    return word in counts and counts[word].most_common(1)[0][0] == tag


def test_the_most_frequent_tag_of_a_word_is_often_wrong():
    def accuracy(column):
        return mean(is_most_frequent(column, w, tag) for w, tag, _ in tagged(unseen(), column))

    assert 0.83 < accuracy("xpos") < 0.875
    assert 0.85 < accuracy("upos") < 0.905
    named = (x for x in tagged(unseen(), "entity") if x[2] != "O")
    assert mean(is_most_frequent("entity", word, tag) for word, tag, _ in named) < 0.6


def test_every_second_word_is_ambiguous_and_then_often_guessed_wrong():
    counts = tags_of_words("xpos")
    tokens = list(tagged(unseen(), "xpos"))
    ambiguous = [(word, tag) for word, tag, _ in tokens if len(counts[word]) > 1]
    assert len(ambiguous) > 0.5 * len(tokens)
    assert mean(is_most_frequent("xpos", *token) for token in ambiguous) < 0.76


def windows(s):
    """Each word with its neighbours, with either of them, and alone."""
    padded = ("<s>", *s.words, "</s>")
    for before, word, after in zip(padded, s.words, padded[2:], strict=False):
        yield (before, word, after), (before, word, None), (None, word, after), (None, word, None)


def window_accuracy(column):
    """The most frequent tag in the same window, or in the mean of the narrower ones."""
    counts = defaultdict(Counter)
    for s in corpus()["train"]:
        for keys, tag in zip(windows(s), s.columns[column], strict=True):
            for key in keys:
                counts[key][tag] += 1

    def guess(keys):
        votes = Counter(counts[keys[0]]) if keys[0] in counts else Counter()
        for key in () if votes else keys[1:]:
            total = counts[key].total() if key in counts else 0
            votes.update({tag: n / total for tag, n in counts[key].items()} if total else {})
        return votes.most_common(1)[0][0] if votes else None

    return mean(
        guess(keys) == tag
        for s in unseen()
        for keys, tag in zip(windows(s), s.columns[column], strict=True)
    )


def test_neighbours_tell_more_but_not_all():
    assert 0.9 < window_accuracy("xpos") < 0.95
    assert 0.93 < window_accuracy("upos") < 0.97


@pytest.mark.parametrize(
    ("word", "tags"),
    [
        ("that", {"DT", "IN", "RB", "WDT"}),
        ("her", {"PRP", "PRP$"}),
        ("to", {"IN", "TO"}),
        ("'s", {"POS", "VBZ"}),
        ("'d", {"MD", "VBD"}),
        ("walk", {"NN", "VB", "VBP"}),
        ("fears", {"NNS", "VBZ"}),
        ("liked", {"VBD", "VBN"}),
        ("cut", {"VB", "VBD", "VBN"}),
        ("light", {"JJ", "NN", "VB"}),
        ("building", {"NN", "VBG"}),
        ("boring", {"JJ", "VBG"}),
        ("early", {"JJ", "RB"}),
        ("pretty", {"JJ", "RB"}),
        ("well", {"NN", "RB"}),
        ("off", {"IN", "RB", "RP"}),
        ("round", {"IN", "JJ", "NN", "RB"}),
        ("like", {"IN", "VB", "VBP"}),
        ("will", {"MD", "NN"}),
    ],
)
def test_a_word_has_several_tags(word, tags):
    drawn = tags_of_words("xpos")[word] | Counter(
        t for w, t, _ in tagged(unseen(), "xpos") if w == word
    )
    assert tags <= set(drawn)


def test_a_word_is_hard_to_guess_without_its_neighbours():
    counts = Counter(word for s in corpus()["train"] for word in s.words)
    total = sum(counts.values())
    entropy = -sum(n / total * math.log(n / total) for n in counts.values())
    assert math.exp(entropy) > 80
    assert max(counts.values()) / total < 0.1


# Nor the class

LABELS = ("negative", "neutral", "positive")


def bags(split, vocabulary):
    counts = np.zeros((len(split), len(vocabulary)))
    for row, s in enumerate(split):
        for word in s.words:
            if word in vocabulary:
                counts[row, vocabulary[word]] += 1
    return counts, np.array([LABELS.index(s.label) for s in split])


@cache
def bags_of_words():
    train = list(corpus()["train"])
    words = sorted({word for s in train for word in s.words})
    vocabulary = {word: i for i, word in enumerate(words)}
    return *bags(train, vocabulary), *bags(unseen(), vocabulary)


def naive_bayes():
    """Multinomial, with one added to every count."""
    x, y, unseen_x, unseen_y = bags_of_words()
    counts = np.array([x[y == k].sum(0) + 1 for k in range(3)])
    likelihood = np.log(counts / counts.sum(1, keepdims=True))
    scores = np.log(np.bincount(y)) + unseen_x @ likelihood.T
    return (scores.argmax(1) == unseen_y).mean()


def logistic_regression(penalty=1e-3, steps=300, rate=1.0):
    """By gradient descent with momentum."""
    x, y, unseen_x, unseen_y = bags_of_words()
    weights, velocity = np.zeros((x.shape[1], 3)), np.zeros((x.shape[1], 3))
    for _ in range(steps):
        scores = x @ weights
        scores = np.exp(scores - scores.max(1, keepdims=True))
        scores /= scores.sum(1, keepdims=True)
        scores[np.arange(len(y)), y] -= 1
        velocity = 0.9 * velocity - rate * (x.T @ scores / len(y) + penalty * weights)
        weights += velocity
    assert (np.argmax(x @ weights, 1) == y).mean() > 0.5, "it has learnt its sentences"
    return (np.argmax(unseen_x @ weights, 1) == unseen_y).mean()


@pytest.mark.parametrize("baseline", [naive_bayes, logistic_regression])
def test_a_bag_of_words_hardly_tells_the_class(baseline):
    majority = max(Counter(s.label for s in unseen()).values()) / len(unseen())
    assert 0.36 < majority < 0.45
    assert majority + 0.02 < baseline() < majority + 0.1


def test_classes_are_balanced_and_questions_have_all_of_them():
    asked = [s for s in sentences() if s.words[-1] == "?"]
    for split, most in ((sentences(), 0.45), (asked, 0.68)):
        shares = [mean(s.label == label for s in split) for label in LABELS]
        assert min(shares) > 0.14
        assert max(shares) < most


FORMS = ("VB", "VBP", "VBZ", "VBD", "VBN", "VBG")
OPINIONS = {
    **{(word, "ADJ"): sign for word, sign in lexicon.POLARITY.items()},
    **{
        (verb.form(form), "VERB"): verb.sign
        for verb in lexicon.AFFECTING + lexicon.OPINION
        for form in FORMS
        if verb.sign
    },
}


def voiced(s, i):
    return OPINIONS.get((s.words[i], s.columns["upos"][i]), 0)


def negators(s, i):
    return [k for k in children(s, i) if s.words[k] in ("not", "n't", "never")]


def deciding(s):
    """The root, or the last predicate that "but" joins to it, and so on."""
    i = root(s)
    while joined := [j for j in conjuncts(s, i) if "but" in [s.words[k] for k in children(s, j)]]:
        i = joined[-1]
    return i


def rule(s):
    """The class of a sentence, read off gold heads and tags."""
    if s.words[-1] == "?" and s.columns["upos"][0] == "AUX":
        return "neutral"
    i = deciding(s)
    opinion = -voiced(s, i) if negators(s, i) else voiced(s, i)
    return LABELS[1 + opinion]


def test_the_tree_tells_the_class():
    for s in [*sentences(), *unseen()]:
        assert s.label == rule(s), s


def test_no_verb_is_both_of_opinion_and_plain():
    plain = [v for verbs in lexicon.INTRANSITIVE.values() for v in verbs]
    plain += [*lexicon.ANY_TRANSITIVE, *lexicon.DITRANSITIVE, *lexicon.MOTION, *lexicon.CAUSATIVE]
    plain += [verb for verb, _ in lexicon.PHRASAL]
    plain += [v for v in lexicon.REPORTING + lexicon.CONTROL + lexicon.AFFECTING if not v.sign]
    assert not {verb.base for verb in plain} & {word for word, upos in OPINIONS if upos == "VERB"}


def test_other_words_distract():
    """Opinions and negators that do not decide, in sentences where one does."""
    opposite = negator = total = 0
    for s in sentences():
        i = deciding(s)
        if s.label != "neutral":
            others = [j for j in range(len(s)) if j != i and voiced(s, j)]
            said = [-voiced(s, j) if negators(s, j) else voiced(s, j) for j in others]
            opposite += LABELS.index(s.label) - 1 in [-opinion for opinion in said]
            mine = negators(s, i)
            negator += any(w in lexicon.NEGATORS for j, w in enumerate(s.words) if j not in mine)
            total += 1
    assert opposite > 0.35 * total
    assert negator > 0.15 * total


# Logical forms

X = r"x _ (\d+)"
DEFINITE = re.compile(rf"\* (\w+) \( {X} \)")
NOUN = re.compile(rf"(\w+) \( {X} \)")
ROLE = re.compile(rf"(\w+) \. (agent|theme|recipient|xcomp|ccomp) \( {X} , (x _ \d+|[A-Z]\w+) \)")
NMOD = re.compile(rf"(\w+) \. nmod \. (\w+) \( {X} , {X} \)")
FUNCTION_WORDS = {"the", "a", "was", "by", "to", "that", ".", *PREPOSITIONS}
SPLITS = ("train", "dev", "test", "gen")


def parse(s):
    """The logical form as (definite nouns, other nouns, roles, modifiers), in their order."""
    *definite, rest = s.logical_form.split(" ; ")
    found = {NOUN: [], ROLE: [], NMOD: []}
    positions = []
    for term in rest.split(" AND "):
        kind, match = next((k, m) for k in found if (m := k.fullmatch(term)))
        found[kind].append(match.groups())
        positions.append(int(re.search(X, term)[1]))
    assert positions == sorted(positions)
    marked = [DEFINITE.fullmatch(term) for term in definite]
    return [m.groups() for m in marked], found[NOUN], found[ROLE], found[NMOD]


def position(filler):
    return int(filler.removeprefix("x _ ")) if filler.startswith("x _ ") else None


@pytest.mark.parametrize("split", SPLITS)
def test_logical_forms_speak_of_the_words_they_point_to(split):
    for s in cogs()[split]:
        definite, indefinite, roles, modifiers = parse(s)
        words = (s.words[0] if s.words[0] not in ("The", "A") else s.words[0].lower(), *s.words[1:])
        mentioned = set()
        for article, nouns in (("the", definite), ("a", indefinite)):
            for noun, i in nouns:
                assert words[int(i) - 1 : int(i) + 1] == (article, noun)
                mentioned.add(int(i))
            assert [int(i) for _, i in nouns] == sorted(int(i) for _, i in nouns)
        nouns = set(mentioned)
        for lemma, _, i, filler in roles:
            assert words[int(i)] in {Verb(lemma).form(form) for form in FORMS}
            mentioned.add(int(i))
            assert position(filler) is not None or filler in words
        for noun, preposition, i, j in modifiers:
            assert words[int(i)] == noun
            assert words[int(j) - 2] == preposition
            assert {int(i), int(j)} <= nouns
        for i, word in enumerate(words):
            said = i in mentioned or word in FUNCTION_WORDS or word[0].isupper()
            assert said, f"nothing is said of {word} in {s}"
            assert (words[i - 1] in ("the", "a") and i > 0) == (i in nouns)


@pytest.mark.parametrize("split", SPLITS)
def test_logical_forms_become_tags_and_back(split):
    for s in cogs()[split]:
        assert form_from_tags(s.words, tags_from_form(s.words, s.logical_form)) == s.logical_form


def test_roles_follow_from_voice_and_control():
    seen = Counter()
    for s in cogs()["train"]:
        roles = parse(s)[2]
        fillers = {(int(i), role): filler for _, role, i, filler in roles}
        governed = {position(f): i for (i, role), f in fillers.items() if role == "xcomp"}
        for (i, role), filler in fillers.items():
            passive, at = s.words[i - 1] == "was", position(filler)
            if role == "agent" and i in governed:
                assert filler == fillers[governed[i], "agent"]
                seen["control"] += 1
            elif role == "agent" and at is not None:
                assert (at > i) == passive
                seen["passive" if passive else "active"] += 1
            elif role == "recipient" and at is not None:
                assert at > i or passive
                seen["given to"] += at < i
            elif role == "ccomp":
                assert at > i
    assert min(seen[kind] for kind in ("control", "passive", "active", "given to")) > 40


@pytest.mark.parametrize("split", SPLITS)
def test_no_sentence_comes_twice(split):
    drawn = list(builtin_cogs(20_000)[split])
    assert len({s.words for s in drawn}) == len(drawn)


ARTICLE, PREPOSITION = "(?:[Tt]he|[Aa])", f"(?:{'|'.join(PREPOSITIONS)})"
NOUN_PHRASE = rf"(?:{ARTICLE} \w+|[A-Z]\w+)"
MODIFIER = rf" {PREPOSITION} {ARTICLE} \w+"
CASES = {  # what every sentence of a case says, and what training says instead
    "subject noun seen only as object": (r"fox \w", r"fox \."),
    "object noun seen only as subject": (r"farmer \.", r"farmer \w"),
    "active verb seen only in the passive": (r"(?<!was) guarded", "was guarded"),
    "passive verb seen only in the active": ("was coached", r"(?<!was) coached"),
    "double-object verb seen only with to": (
        rf"lent {NOUN_PHRASE} {ARTICLE} ",
        rf"lent {ARTICLE} \w+(?:{MODIFIER})* to ",
    ),
    "verb with to seen only with two objects": (
        rf"sent {ARTICLE} \w+(?:{MODIFIER})* to ",
        rf"sent {NOUN_PHRASE} {ARTICLE} ",
    ),
    "prepositional phrase on the subject": (
        rf"(?:^|that ){ARTICLE} \w+{MODIFIER} ",
        rf"(?!was)\w+ {ARTICLE} \w+{MODIFIER}",
    ),
    "deeper recursion of prepositional phrases": (f"(?:{MODIFIER}){{3}}", f"(?:{MODIFIER}){{2}}"),
    "deeper recursion of sentential complements": (r"(?:that .*){3}", r"(?:that .*){2}"),
}


def saying(pattern, split):
    return sum(re.search(pattern, " ".join(s.words)) is not None for s in split)


@pytest.mark.parametrize("case", GENERALISATIONS)
def test_generalisation_cases_are_unseen_but_can_be_learnt(case):
    new, known = CASES[case]
    examples = [s for s in cogs()["gen"] if s.label == case]
    assert len(examples) == 4000 // 4 // len(GENERALISATIONS)
    assert saying(new, examples) == len(examples)
    assert saying(known, cogs()["train"]) > 20
    for split in ("train", "dev", "test"):
        assert saying(new, cogs()[split]) == 0
        assert {s.label for s in cogs()[split]} == {None}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("case", CASES)
def test_the_smallest_training_split_has_something_for_each_case(case, seed):
    assert saying(CASES[case][1], builtin_cogs(len(GENERALISATIONS), seed)["train"]) > 0
