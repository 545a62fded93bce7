"""The built-in corpus: the same everywhere, well-formed, and not to be had from words alone."""

import hashlib
import math
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from functools import cache

import pytest

from probformer.data.builtin import builtin_cogs, builtin_corpus, lexicon
from probformer.data.builtin.logical_forms import GENERALISATIONS, PREPOSITIONS
from probformer.data.sentence import NO_HEAD
from probformer.errors import InputError

OPEN = {"ADJ", "ADV", "NOUN", "PROPN", "VERB"}
UPOS = OPEN | {"ADP", "AUX", "CCONJ", "DET", "PART", "PRON", "PUNCT", "SCONJ"}
VERBAL = {"MD", "TO", "VB", "VBD", "VBN", "VBP", "VBZ"}
NOMINAL_TAGS = {"DT", "NN", "NNP", "NNS", "PRP", "PRP$", "WDT", "WP"}
XPOS = VERBAL | NOMINAL_TAGS | {",", ".", "CC", "IN", "JJ", "RB", "WRB"}
NOMINAL = {"NOUN", "PROPN", "PRON"}
ENTITY = re.compile(r"(?:S-(\w+) |B-(\w+) (?:I-\2 )*E-\2 |O )+")


@cache
def corpus():
    return builtin_corpus(3000, seed=1)


@cache
def cogs():
    return builtin_cogs(3000, seed=1)


def sentences():
    return [s for split in corpus().values() for s in split]


def children(s, i):
    return [j for j, head in enumerate(s.heads) if head == i]


def root(s):
    return s.heads.index(NO_HEAD)


def conjuncts(s, i):
    """Dependents that a conjunction coordinates with word i."""
    return [j for j in children(s, i) if any(s.columns["xpos"][k] == "CC" for k in children(s, j))]


# The same everywhere


def digest():
    return hashlib.sha256(repr((builtin_corpus(200), builtin_cogs(200))).encode()).hexdigest()


def test_another_process_draws_the_same_without_torch_or_numpy():
    code = """
import hashlib, sys
from probformer.data.builtin import builtin_cogs, builtin_corpus
print(hashlib.sha256(repr((builtin_corpus(200), builtin_cogs(200))).encode()).hexdigest())
assert not {"torch", "numpy"} & set(sys.modules)
"""
    for salt in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": salt}
        command = [sys.executable, "-c", code]
        run = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        assert run.stdout.strip() == digest()


@pytest.mark.parametrize("make", [builtin_corpus, builtin_cogs])
def test_a_larger_corpus_begins_with_the_smaller(make):
    small, large = make(100), make(300)
    for split, sentences_ in small.items():
        assert large[split][: len(sentences_)] == sentences_
        assert len(large[split]) > len(sentences_)


@pytest.mark.parametrize("make", [builtin_corpus, builtin_cogs])
def test_sizes_seeds_and_disjoint_splits(make):
    made = make(400)
    assert [len(made[split]) for split in ("train", "dev", "test")] == [400, 50, 50]
    assert all(make(1).values()), "every split has a sentence"
    assert make(400, seed=1)["train"] != made["train"]
    words = {split: {s.words for s in made[split]} for split in made}
    for split in set(made) - {"train"}:
        assert not words["train"] & words[split]
    assert not words["dev"] & words["test"]


@pytest.mark.parametrize("arguments", [{"size": 0}, {"size": 1.5}, {"seed": "1"}, {"seed": True}])
@pytest.mark.parametrize("make", [builtin_corpus, builtin_cogs])
def test_what_is_refused(make, arguments):
    with pytest.raises(InputError, match=next(iter(arguments))):
        make(**arguments)


# Well-formed


def test_annotation_is_complete_and_from_closed_lists():
    seen = defaultdict(set)
    for s in sentences():
        assert set(s.columns) == {"upos", "xpos", "entity"}
        assert {len(column) for column in s.columns.values()} == {len(s)} == {len(s.heads)}
        assert s.words[-1] in ".?"
        assert s.logical_form is None
        for name, column in s.columns.items():
            seen[name].update(column)
        seen["label"].add(s.label)
        for word, tag in zip(s.words, s.columns["xpos"], strict=True):
            assert word[0].isupper() == (tag == "NNP")
    kinds = {f"{mark}-{kind}" for mark in "BES" for kind in ("PER", "LOC", "ORG")}
    assert seen["upos"] == UPOS
    assert seen["xpos"] == XPOS
    assert seen["entity"] == kinds | {"I-ORG", "O"}
    assert seen["label"] == {"positive", "neutral", "negative"}


def test_trees_have_one_root_no_cycle_and_no_crossing():
    for s in sentences():
        assert s.heads.count(NO_HEAD) == 1
        ancestors = []
        for i in range(len(s)):
            above, node = [], i
            while s.heads[node] != NO_HEAD:
                node = s.heads[node]
                above.append(node)
                assert len(above) < len(s), "a cycle"
            ancestors.append(set(above))
        for i, head in enumerate(s.heads):
            for between in range(min(i, head) + 1, max(i, head)):
                assert head in (NO_HEAD, between) or head in ancestors[between], s


def test_names_are_well_formed():
    for s in sentences():
        assert ENTITY.fullmatch(" ".join(s.columns["entity"]) + " ")
        for tag, entity in zip(s.columns["xpos"], s.columns["entity"], strict=True):
            assert (tag == "NNP") <= (entity != "O")
            assert (entity != "O") <= (tag in ("NNP", "IN"))


def test_lengths():
    lengths = sorted(len(s) for s in sentences())
    assert lengths[-1] <= 40
    assert sum(4 <= n <= 25 for n in lengths) > 0.9 * len(lengths)
    assert 9 < sum(lengths) / len(lengths) < 16
    assert 150 <= len({word for s in sentences() for word in s.words}) <= 400


def subject(s, finite):
    """The word that the finite verb agrees with, and the predicate it is the subject of."""
    upos = s.columns["upos"]
    clause = finite if upos[finite] == "VERB" else s.heads[finite]
    while True:
        candidates = [k for k in children(s, clause) if k < clause and upos[k] in NOMINAL]
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
    if tag in ("WDT", "WP") and governor != NO_HEAD and upos[governor] == "NOUN":
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


def has_relative_clause(s, with_pronoun=None):
    upos, xpos = s.columns["upos"], s.columns["xpos"]
    for i in range(len(s)):
        if upos[i] in ("VERB", "ADJ") and 0 <= s.heads[i] < i and upos[s.heads[i]] == "NOUN":
            pronoun = any(xpos[k] in ("WDT", "WP") for k in children(s, i))
            if with_pronoun in (None, pronoun):
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


def has_nested_prepositions(s):
    upos = s.columns["upos"]
    marked = {s.heads[i] for i in range(len(s)) if upos[i] == "ADP"}
    return any(s.heads[i] in marked for i in marked)


def has_two_objects(s):
    upos = s.columns["upos"]

    def bare(j):
        marks = {upos[k] for k in children(s, j)}
        return upos[j] in NOMINAL and not marks & {"ADP", "CCONJ"}

    verbs = (i for i in range(len(s)) if upos[i] == "VERB")
    return any(sum(bare(j) for j in children(s, i) if j > i) == 2 for i in verbs)


CONSTRUCTIONS = {
    "relative clause": (has_relative_clause, 0.1),
    "relative clause without pronoun": (lambda s: has_relative_clause(s, False), 0.01),
    "question": (lambda s: s.words[-1] == "?", 0.1),
    "wh-question": (lambda s: s.columns["xpos"][0] in ("WP", "WDT", "WRB"), 0.05),
    "negation": (lambda s: bool({"not", "never"} & set(s.words)), 0.2),
    "modal": (has_tag("MD"), 0.1),
    "infinitive": (has_tag("TO"), 0.05),
    "pronoun": (has_tag("PRP"), 0.1),
    "name": (has_tag("NNP"), 0.2),
    "adverb": (has_tag("RB"), 0.2),
    "passive": (has_passive, 0.1),
    "coordinated nouns": (has_coordination(NOMINAL), 0.05),
    "coordinated clauses or verb phrases": (has_coordination({"VERB", "ADJ"}), 0.15),
    "subordinate clause": (lambda s: "SCONJ" in s.columns["upos"], 0.1),
    "nested prepositional phrases": (has_nested_prepositions, 0.02),
    "two objects": (has_two_objects, 0.02),
}


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_every_construction_is_frequent(name):
    check, least = CONSTRUCTIONS[name]
    share = sum(map(check, sentences())) / len(sentences())
    assert least < share < 0.75


# Words alone do not tell


def most_frequent_tag_accuracy(column, named_only=False):
    counts = defaultdict(Counter)
    for s in corpus()["train"]:
        for word, tag in zip(s.words, s.columns[column], strict=True):
            counts[word][tag] += 1
    right = []
    for s in corpus()["dev"]:
        for word, tag, entity in zip(s.words, s.columns[column], s.columns["entity"], strict=True):
            if entity != "O" or not named_only:
                right.append(bool(counts[word]) and counts[word].most_common(1)[0][0] == tag)
    return sum(right) / len(right)


def test_tags_are_ambiguous():
    assert 0.85 < most_frequent_tag_accuracy("xpos") < 0.93
    assert 0.85 < most_frequent_tag_accuracy("upos") < 0.95
    assert most_frequent_tag_accuracy("entity", named_only=True) < 0.6


@pytest.mark.parametrize(
    ("word", "tags"),
    [
        ("that", {"DT", "IN", "WDT"}),
        ("her", {"PRP", "PRP$"}),
        ("to", {"IN", "TO"}),
        ("walk", {"NN", "VB", "VBP"}),
        ("plans", {"NNS", "VBZ"}),
        ("liked", {"VBD", "VBN"}),
        ("light", {"JJ", "NN", "VB"}),
        ("early", {"JJ", "RB"}),
        ("well", {"NN", "RB"}),
        ("like", {"IN", "VB", "VBP"}),
    ],
)
def test_a_word_has_several_tags(word, tags):
    pairs = {pair for s in sentences() for pair in zip(s.words, s.columns["xpos"], strict=True)}
    assert {(word, tag) for tag in tags} <= pairs


def test_a_word_is_hard_to_guess_without_its_neighbours():
    counts = Counter(word for s in corpus()["train"] for word in s.words)
    total = sum(counts.values())
    entropy = -sum(n / total * math.log(n / total) for n in counts.values())
    assert math.exp(entropy) > 80
    assert max(counts.values()) / total < 0.1


def naive_bayes(train):
    labels = Counter(s.label for s in train)
    counts = {label: Counter() for label in labels}
    for s in train:
        counts[s.label].update(set(s.words))

    def score(label, words):
        likelihood = (math.log((counts[label][w] + 1) / (labels[label] + 2)) for w in words)
        return math.log(labels[label]) + sum(likelihood)

    return lambda s: max(sorted(labels), key=lambda label: score(label, set(s.words)))


def test_a_bag_of_words_does_not_tell_the_class():
    guess, dev = naive_bayes(corpus()["train"]), corpus()["dev"]
    majority = Counter(s.label for s in dev).most_common(1)[0][1] / len(dev)
    assert majority < 0.6
    assert sum(guess(s) == s.label for s in dev) / len(dev) < 0.62
    shares = Counter(s.label for s in sentences())
    assert min(shares.values()) / len(sentences()) > 0.2


FORMS = ("VB", "VBP", "VBZ", "VBD", "VBN")
VOICED = {v.form(form): v.sign for v in lexicon.OPINION for form in FORMS} | lexicon.POLARITY
EMBEDDING = {v.form(form) for v in lexicon.COMPLEMENT + lexicon.CONTROL for form in FORMS}


def opinion(s, i):
    """Read off the tree: word i's own, negated or not, unless a later conjunct has another."""
    negated = any(s.words[k] in ("not", "never") for k in children(s, i) if k < i)
    voiced = VOICED.get(s.words[i], 0) * (-1 if negated else 1)
    later = [opinion(s, j) for j in conjuncts(s, i) if s.columns["upos"][j] in ("VERB", "ADJ")]
    return next((o for o in reversed(later) if o), voiced)


def test_the_class_is_the_opinion_that_the_tree_voices():
    names = {1: "positive", 0: "neutral", -1: "negative"}
    checked = Counter()
    for s in sentences():
        if s.words[-1] == "?":
            assert s.label == "neutral"
            continue
        verbs = {w for w, tag in zip(s.words, s.columns["upos"], strict=True) if tag == "VERB"}
        if not EMBEDDING & verbs:
            assert s.label == names[opinion(s, root(s))], s
            checked[s.label] += 1
    assert min(checked.values()) > 300


@pytest.mark.parametrize("governor", ["doubt", "deny", "refuse", "fail"])
def test_some_verbs_turn_the_opinion_below_them_round(governor):
    forms = {lexicon.Verb(governor).form(form) for form in FORMS}
    checked = 0
    for s in sentences():
        top = root(s)
        verbs = [i for i in children(s, top) if i > top and s.columns["upos"][i] in ("VERB", "ADJ")]
        plain = s.words[top] in forms and len(verbs) == 1 and s.words[-1] == "."
        if plain and not conjuncts(s, top) and s.words[verbs[0]] not in EMBEDDING:
            negated = any(s.words[k] in ("not", "never") for k in children(s, top))
            expected = opinion(s, verbs[0]) * (1 if negated else -1)
            subordinators = [s.words[k] for k in children(s, verbs[0]) if k < verbs[0]]
            if not set(subordinators) & set(lexicon.CONJUNCTIONS):
                assert s.label == {1: "positive", 0: "neutral", -1: "negative"}[expected], s
                checked += expected != 0
    assert checked > 2


# Logical forms

X = r"x _ (\d+)"
DEFINITE = re.compile(rf"\* (\w+) \( {X} \)")
NOUN = re.compile(rf"(\w+) \( {X} \)")
ROLE = re.compile(rf"(\w+) \. (agent|theme|recipient|xcomp|ccomp) \( {X} , (x _ \d+|[A-Z]\w+) \)")
NMOD = re.compile(rf"(\w+) \. nmod \. (\w+) \( {X} , {X} \)")
FUNCTION_WORDS = {"the", "a", "was", "by", "to", "that", ".", *PREPOSITIONS}


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


@pytest.mark.parametrize("split", ["train", "dev", "test", "gen"])
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
            assert words[int(i)] in {lexicon.Verb(lemma).form(form) for form in FORMS}
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
            elif role in ("ccomp", "recipient") and at is not None:
                assert at > i
    assert min(seen[kind] for kind in ("control", "passive", "active")) > 50


def depth(pairs):
    """The longest chain of (outer, inner) pairs."""
    inner_of = defaultdict(list)
    for outer, inner in pairs:
        inner_of[outer].append(inner)

    def below(node):
        return max((1 + below(inner) for inner in inner_of[node]), default=0)

    return max(map(below, list(inner_of)), default=0)


def features(s):
    """What a generalisation can be about: who has which role, which frames, how deep."""
    definite, indefinite, roles, modifiers = parse(s)
    noun_at = {int(i): noun for noun, i in definite + indefinite}
    found = {("prepositions", depth((i, j) for _, _, i, j in modifiers))}
    ccomps = [(i, filler.removeprefix("x _ ")) for _, r, i, filler in roles if r == "ccomp"]
    found.add(("complements", depth(ccomps)))
    modified = {int(i) for _, _, i, _ in modifiers}
    order = defaultdict(list)
    for lemma, role, i, filler in roles:
        order[lemma, i].append(role)
        side = "before" if (position(filler) or 0) < int(i) else "after"
        found.add((noun_at.get(position(filler)), side, role))
        found.add((lemma, "passive" if s.words[int(i) - 1] == "was" else "active"))
        if position(filler) in modified and side == "before":
            found.add("modified subject")
    for (lemma, _), listed in order.items():
        found.add((lemma, *[role for role in listed if role in ("theme", "recipient")]))
    return found


UNSEEN = {  # what every sentence of a case has one of, and what training has to learn it from
    "subject noun seen only as object": ({("fox", "before", "agent")}, ("fox", "after", "theme")),
    "object noun seen only as subject": (
        {("farmer", "after", "theme")},
        ("farmer", "before", "agent"),
    ),
    "active verb seen only in the passive": ({("guard", "active")}, ("guard", "passive")),
    "passive verb seen only in the active": ({("coach", "passive")}, ("coach", "active")),
    "double-object verb seen only with to": (
        {("lend", "recipient", "theme")},
        ("lend", "theme", "recipient"),
    ),
    "verb with to seen only with two objects": (
        {("send", "theme", "recipient")},
        ("send", "recipient", "theme"),
    ),
    "prepositional phrase on the subject": ({"modified subject"}, ("prepositions", 1)),
    "deeper recursion of prepositional phrases": (
        {("prepositions", n) for n in (3, 4, 5)},
        ("prepositions", 2),
    ),
    "deeper recursion of sentential complements": (
        {("complements", n) for n in (3, 4, 5)},
        ("complements", 2),
    ),
}


@cache
def train_features():
    return Counter(feature for s in cogs()["train"] for feature in features(s))


@pytest.mark.parametrize("case", GENERALISATIONS)
def test_generalisation_cases_are_unseen_but_can_be_learnt(case):
    unseen, seen = UNSEEN[case]
    examples = [s for s in cogs()["gen"] if s.label == case]
    assert len(examples) >= 3000 // 4 // len(GENERALISATIONS)
    assert all(features(s) & unseen for s in examples)
    assert not any(train_features()[feature] for feature in unseen)
    assert train_features()[seen] > 20
    assert {s.label for s in cogs()["train"]} == {None}
