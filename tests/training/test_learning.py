"""Every task learns on the built-in corpus, above what words without context can tell."""

from collections import Counter
from math import log

import pytest

from helpers.runs import LARGER, settings
from probformer.config.lookup import read_settings
from probformer.data.builtin import builtin_cogs, builtin_corpus
from probformer.data.cogs import NO_PARENT, tags_from_form
from probformer.data.spans import f1, spans_by_conlleval
from probformer.training.commands import train_one
from probformer.training.quickstart import frequent_tag_accuracy, unigram_perplexity


def test_masked_language_models(tmp_path):
    """Below 60 % of the unigram's perplexity."""
    given = settings(encoder=LARGER, size=1000, epochs=8)
    results = train_one(given, tmp_path)
    assert results["test"]["perplexity"] < 0.6 * unigram_perplexity(tmp_path, given)


def test_taggers(tmp_path):
    """A third fewer errors than the most frequent tag of each word."""
    given = settings("tagging", LARGER, size=800, epochs=8)
    results = train_one(given, tmp_path)
    assert 1 - results["test"]["accuracy"] < 2 / 3 * (1 - frequent_tag_accuracy(given))


def test_named_entities(tmp_path):
    """10 points of F1 more than the most frequent tag of each word."""
    results = train_one(settings("ner", LARGER, size=1200, epochs=8), tmp_path)
    assert results["test"]["f1"] > 0.1 + frequent_tag_f1(builtin_corpus(1200))


def frequent_tag_f1(corpus) -> float:
    counts: dict[str, Counter[str]] = {}
    for sentence in corpus["train"]:
        for word, tag in zip(sentence.words, sentence.columns["entity"], strict=True):
            counts.setdefault(word, Counter())[tag] += 1
    most = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
    right = guessed = gold = 0
    for sentence in corpus["test"]:
        expected = spans_by_conlleval(sentence.columns["entity"])
        found = spans_by_conlleval([most.get(word, "O") for word in sentence.words])
        right, guessed = right + len(expected & found), guessed + len(found)
        gold += len(expected)
    return f1(right, guessed, gold)


def test_logical_forms(tmp_path):
    """40 points more than the most frequent tags of each word."""
    results = train_one(settings("cogs", LARGER, size=1500, epochs=10), tmp_path)
    assert results["test"]["accuracy"] > 0.4 + frequent_tags_accuracy(builtin_cogs(1500))
    assert results["test"]["exact match"] >= results["test"]["accuracy"]
    assert len([name for name in results["gen"] if name.startswith("accuracy/")]) == 9


def frequent_tags_accuracy(corpus) -> float:
    """Of whole sentences; parents by their distance."""
    counts: dict[str, Counter] = {}
    for sentence in corpus["train"]:
        for word, tags in zip(sentence.words, tags_of(sentence), strict=True):
            counts.setdefault(word, Counter())[tags] += 1
    most = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
    test = list(corpus["test"])
    return sum(tags_of(s) == [most.get(word) for word in s.words] for s in test) / len(test)


def tags_of(sentence) -> list[tuple]:
    tags = tags_from_form(sentence.words, sentence.logical_form)
    parents = [None if p == NO_PARENT else p - i for i, p in enumerate(tags.parent)]
    return list(zip(parents, tags.role, tags.category, tags.noun_type, tags.verb_name, strict=True))


@pytest.mark.long
def test_classifiers(tmp_path):
    """The config that is bundled: 10 points more than a bag of words."""
    given = read_settings("classification-builtin-pt", [])
    results = train_one(given, tmp_path)
    bag = bag_of_words_accuracy(builtin_corpus(given.data.size, given.data.seed))
    assert bag > 0.4
    assert results["test"]["accuracy"] > 0.1 + bag


def bag_of_words_accuracy(corpus) -> float:
    """Of a multinomial naive Bayes classifier that adds one to each count."""
    words: dict[str, Counter[str]] = {}
    labels: Counter[str] = Counter()
    for sentence in corpus["train"]:
        labels[sentence.label] += 1
        words.setdefault(sentence.label, Counter()).update(sentence.words)
    known = set().union(*words.values())
    totals = {label: counts.total() + len(known) for label, counts in words.items()}

    def score(label, sentence):
        seen = [word for word in sentence.words if word in known]
        likelihood = sum(log((words[label][word] + 1) / totals[label]) for word in seen)
        return log(labels[label]) + likelihood

    guesses = [max(labels, key=lambda label: score(label, s)) == s.label for s in corpus["test"]]
    return sum(guesses) / len(guesses)
