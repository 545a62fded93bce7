"""Real data, where a user has it: `make check-data DATA=folder`. Counts as published."""

import gzip
import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import conllu
import numpy as np
from seqeval.metrics import f1_score
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOBES, Entities

from probformer.analysis.parse.attachment import LEFT, RIGHT, Score, baseline_hits
from probformer.config.lookup import read_settings
from probformer.data.cogs import WordTags, form_from_tags, tags_from_form
from probformer.data.corpus import build_vocabulary, load_corpus
from probformer.data.fetch import check_corpus
from probformer.data.readers import SentenceFile
from probformer.data.registry import list_corpora
from probformer.data.sentence import Sentence
from probformer.data.spans import SchemeReader, Span, f1, spans_by_conlleval, spans_strict
from probformer.sentinels import ROOT

SENTENCES = {
    "mlm-ptb-pt": {"train": 42_068, "dev": 3_370, "test": 3_761},
    "mlm-enwiki-pt": {"train": 44_166, "dev": 29_558, "test": 28_380},
    "tagging-ud_ewt-xpos-pt": {"train": 12_543, "dev": 2_001, "test": 2_077},
    "ner-conll2003-pt": {"train": 14_041, "dev": 3_250, "test": 3_453},
    "classification-sst2-pt": {"train": 67_349, "dev": 872, "test": 1_821},
    "classification-sst5-pt": {"train": 8_544, "dev": 1_101, "test": 2_210},
    "cogs-cogs-pt": {"train": 24_155, "dev": 3_000, "test": 3_000, "gen": 21_000},
}
WIKITEXT = {"train": 2_088_628, "valid": 217_646, "test": 245_569}
CONLL_TOKENS = {"train": 203_621, "dev": 51_362, "test": 46_435}
CONLL_ENTITIES = {"train": 23_499, "dev": 5_942, "test": 5_648}
CONLL_TRAIN_KINDS = {"LOC": 7_140, "MISC": 3_438, "ORG": 6_321, "PER": 6_600}


def check(what: str, found: object, expected: object) -> bool:
    good = found == expected
    print(f"{'ok' if good else 'WRONG'}: {what}: {found}" + ("" if good else f", not {expected}"))
    return good


def splits_of(config: str, root: Path) -> dict[str, list[Sentence]]:
    """As the config reads them."""
    corpus = load_corpus(read_settings(config, []).data, root)
    return {name: list(sentences) for name, sentences in corpus.splits.items()}


def tokens(sentences: Sequence[Sentence]) -> int:
    return sum(map(len, sentences))


def check_files(root: Path) -> bool:
    """Every corpus folder that is there has the files that the registry knows, byte for byte."""
    good = True
    for corpus in list_corpora():
        if corpus.files and (root / corpus.name).is_dir():
            wrong = [str(state) for state in check_corpus(corpus, root) if state.state != "ok"]
            good &= check(f"{corpus.name}: files that differ from the registry", wrong, [])
    return good


def check_counts(root: Path) -> bool:
    good = True
    for config, expected in SENTENCES.items():
        folder = read_settings(config, []).data.folder
        if (root / folder).is_dir():
            found = {name: len(split) for name, split in splits_of(config, root).items()}
            good &= check(f"{config}: sentences", found, expected)
    return good


def check_ptb(root: Path) -> bool:
    settings = read_settings("mlm-ptb-pt", [])
    corpus = load_corpus(settings.data, root)
    vocabulary = build_vocabulary(settings.vocabulary, corpus.counted)
    return check("PTB vocabulary", len(vocabulary), 10_000)


def check_ewt(root: Path) -> bool:
    splits = splits_of("tagging-ud_ewt-xpos-pt", root)
    good = check("EWT training words", tokens(splits["train"]), 204_578)
    for column, count in (("xpos", 50), ("upos", 17)):
        tags = {tag for sentence in splits["train"] for tag in sentence.columns[column]}
        good &= check(f"EWT {column} tags", len(tags), count)
    for name, sentences in splits.items():
        path = root / "ud_ewt" / f"en_ewt-ud-{name}.conllu"
        with path.open(encoding="utf-8") as file:
            theirs = [read_by_conllu(block) for block in conllu.parse_incr(file)]
        ours = [replace(sentence, document="") for sentence in sentences]
        good &= check(f"EWT {name} equals the conllu package", theirs == ours, True)
        good &= check_chains(f"EWT {name}", sentences, path)
    return good


def check_chains(what: str, sentences: Sequence[Sentence], path: Path) -> bool:
    """UAS of chains of words, counted from the ids in the file; with and without punctuation."""
    score = Score()
    for sentence in sentences:
        gold = np.array(sentence.heads)
        score.add(sentence, baseline_hits(gold, np.random.default_rng(0)))
    right: Counter[tuple[str, bool]] = Counter()
    total: Counter[bool] = Counter()
    for block in conllu.parse(path.read_text(encoding="utf-8")):
        words = [token for token in block if isinstance(token["id"], int)]
        for token in words:
            punctuation, last = token["upos"] == "PUNCT", token["id"] == len(words)
            total[punctuation] += 1
            right[LEFT, punctuation] += token["head"] == token["id"] - 1
            right[RIGHT, punctuation] += token["head"] == (0 if last else token["id"] + 1)
    good = True
    for chain in (LEFT, RIGHT):
        ours = score.accuracy(chain)
        good &= check(
            f"{what}: UAS of the {chain}, all words and without punctuation",
            (ours.uas, ours.uas_without_punctuation),
            (
                (right[chain, False] + right[chain, True]) / total.total(),
                right[chain, False] / total[False],
            ),
        )
    return good


def read_by_conllu(block: conllu.TokenList) -> Sentence:
    words = [token for token in block if isinstance(token["id"], int)]
    columns = {
        name: tuple("_" if token[name] is None else token[name] for token in words)
        for name in ("lemma", "upos", "xpos", "deprel")
    }
    heads = tuple(token["head"] - 1 if token["head"] else ROOT for token in words)
    return Sentence(tuple(token["form"] for token in words), columns, heads)


def check_wsj_sample(root: Path) -> bool:
    splits = splits_of("tagging-wsj_sample-pt", root)
    sentences = [sentence for split in splits.values() for sentence in split]
    good = check("WSJ sample sentences", len(sentences), 3_914)
    good &= check("WSJ sample tokens", tokens(sentences), 94_084)
    tags = {tag for sentence in sentences for tag in sentence.columns["xpos"]}
    good &= check("WSJ sample tags", len(tags), 45)
    documents = [{s.document for s in split} for split in splits.values()]
    shared = len(set.union(*documents)) - sum(map(len, documents))
    return good & check("WSJ sample documents shared by splits", shared, 0)


def check_wikitext(root: Path) -> bool:
    files = {split: SentenceFile(root / f"wikitext2/wiki.{split}.tokens") for split in WIKITEXT}
    found = {}
    for split, file in files.items():
        lines = Path(file.path).read_text(encoding="utf-8").count("\n")  # each counts as one token
        found[split] = sum(map(len, file)) + lines
    return check("WikiText-2 tokens", found, WIKITEXT)


def tolerant_by_seqeval(tags: Sequence[str]) -> set[Span]:
    return {Span(start, last + 1, kind) for kind, start, last in get_entities(list(tags))}


def strict_by_seqeval(tags: Sequence[str]) -> set[Span]:
    (entities,) = Entities([list(tags)], IOBES).entities
    return {Span(entity.start, entity.end, entity.tag) for entity in entities}


def check_entities() -> bool:
    chance = random.Random(0)
    kinds = ("PER", "LOC", "work-of-art")
    tags = ["O", *(f"{prefix}-{kind}" for prefix in "BIES" for kind in kinds)]
    gold = [chance.choices(tags, k=chance.randint(1, 15)) for _ in range(10_000)]
    guesses = [
        [tag if chance.random() < 0.8 else chance.choice(tags) for tag in sentence]
        for sentence in gold
    ]
    good = True
    for name, ours, theirs, settings in (
        ("conlleval", spans_by_conlleval, tolerant_by_seqeval, {}),
        ("strict", spans_strict, strict_by_seqeval, {"mode": "strict", "scheme": IOBES}),
    ):
        same = sum(ours(sentence) == theirs(sentence) for sentence in gold)
        good &= check(f"random taggings read as seqeval reads them, {name}", same, len(gold))
        pairs = [(ours(a), ours(b)) for a, b in zip(gold, guesses, strict=True)]
        right = sum(len(a & b) for a, b in pairs)
        found = f1(right, sum(len(b) for _, b in pairs), sum(len(a) for a, _ in pairs))
        expected = float(f1_score(gold, guesses, **settings))
        good &= check(f"F1 as of seqeval, {name}", round(found, 12), round(expected, 12))
    return good


def check_conll2003(root: Path) -> bool:
    reader = SchemeReader()
    entities: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    splits, alike = splits_of("ner-conll2003-pt", root), True
    for name, sentences in splits.items():
        for sentence in sentences:
            tags = sentence.columns["entity"]
            bioes = reader.to_bioes(tags, sentence.place)
            spans = spans_strict(bioes)
            alike &= spans == spans_by_conlleval(bioes) == tolerant_by_seqeval(tags)
            entities[name] += len(spans)
            kinds.update(span.kind for span in spans if name == "train")
    found = {name: tokens(sentences) for name, sentences in splits.items()}
    good = check("CoNLL-2003 tokens", found, CONLL_TOKENS)
    good &= check("CoNLL-2003 entities are those that seqeval reads", alike, True)
    good &= check("CoNLL-2003 entities", dict(entities), CONLL_ENTITIES)
    return good & check("CoNLL-2003 training entities", dict(kinds), CONLL_TRAIN_KINDS)


def cogs_tags(path: Path) -> list[tuple[tuple[str, ...], WordTags]]:
    """The published conversion."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    names = [field.name for field in fields(WordTags)]
    return [(tuple(row["tokens"]), WordTags(*(tuple(row[name]) for name in names))) for row in rows]


def check_cogs(root: Path) -> bool:
    good = True
    for split, sentences in splits_of("cogs-cogs-pt", root).items():
        published = cogs_tags(root / "cogs_seqtag" / f"{split}_seqtag.jsonl.gz")
        ours = [(s.words, tags_from_form(s.words, s.logical_form or "")) for s in sentences]
        good &= check(f"COGS {split} has the published tags", ours == published, True)
        wrong = sum(
            form_from_tags(sentence.words, tags) != sentence.logical_form
            for sentence, (_, tags) in zip(sentences, published, strict=True)
            if sentence.label != "primitive"
        )
        good &= check(f"COGS {split} forms that the published tags do not give", wrong, 0)
    return good


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1] else None
    if root is None:
        print("skipped: no data; give DATA=folder with corpora in folders like ptb_lm/")
        return
    checks = {
        ("ptb_lm",): check_ptb,
        ("ud_ewt",): check_ewt,
        ("wsj_sample",): check_wsj_sample,
        ("wikitext2",): check_wikitext,
        ("conll2003",): check_conll2003,
        ("cogs", "cogs_seqtag"): check_cogs,
    }
    results = [check_files(root), check_counts(root), check_entities()]
    done = 0
    for names, run in checks.items():
        if all((root / name).is_dir() for name in names):
            results.append(run(root))
            done += 1
        else:
            print(f"skipped: {' and '.join(names)}: not in {root}")
    raise SystemExit(0 if done and all(results) else 1)


if __name__ == "__main__":
    main()
