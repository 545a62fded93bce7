"""The Trainer of transformers trains these models, and `probformer` reads what it writes."""

import json

import pytest
import torch
from typer.testing import CliRunner

from helpers.hf_runs import name_of_checkpointing
from helpers.runs import PT, TRANSFORMER
from probformer.cli import app
from probformer.config import BuiltinData
from probformer.data.corpus import load_corpus
from probformer.data.vocabulary import Vocabulary
from probformer.runs.prediction import predict
from probformer.runs.run_folder import load_run

transformers = pytest.importorskip("transformers", reason="needs the package transformers")
import probformer.hf as hf  # noqa: E402

CHECKPOINTING = name_of_checkpointing(transformers)


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    folder = tmp_path_factory.mktemp("none")
    return list(load_corpus(BuiltinData(size=40), folder).splits["train"])


@pytest.fixture
def tokenizer(sentences, tmp_path):
    vocabulary = Vocabulary.from_sentences([sentence.words for sentence in sentences])
    vocabulary.save(tmp_path / "tokenizer.json")
    return hf.ProbformerTokenizer(tokenizer_file=str(tmp_path / "tokenizer.json"))


def fit(model, rows, tokenizer, collator, out, **options):
    """A few steps; the losses of the first and the last, and where the model is."""
    arguments = transformers.TrainingArguments(
        output_dir=str(out),
        max_steps=12,
        per_device_train_batch_size=20,
        learning_rate=2e-2,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        dataloader_pin_memory=False,
        seed=0,
        **options,
    )
    trainer = transformers.Trainer(model, arguments, collator, rows, processing_class=tokenizer)
    trainer.train()
    trainer.save_model(str(out))
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(losses) == 12
    assert sum(losses[-3:]) < 0.98 * sum(losses[:3])
    return out


def tagged(sentences, tokenizer, names):
    """As tutorials do it: a word's first token has its tag, others none."""
    for sentence in sentences:
        tokens = tokenizer(list(sentence.words), is_split_into_words=True)
        tags = [names.index(tag) for tag in sentence.columns["upos"]]
        word_of = tokens.word_ids()
        firsts = [at == 0 or word != word_of[at - 1] for at, word in enumerate(word_of)]
        labels = [tags[w] if first else -100 for w, first in zip(word_of, firsts, strict=True)]
        yield {**tokens, "labels": labels}


@pytest.mark.parametrize("encoder", [PT, TRANSFORMER], ids=["pt", "transformer"])
def test_tags_from_scratch(sentences, tokenizer, tmp_path, encoder):
    names = sorted({t for s in sentences for t in s.columns["upos"]}, reverse=True)
    config = hf.ProbformerConfig(
        vocab_size=len(tokenizer), encoder=encoder, id2label=dict(enumerate(names))
    )
    model = transformers.AutoModelForTokenClassification.from_config(config)
    rows = list(tagged(sentences, tokenizer, names))
    collator = transformers.DataCollatorForTokenClassification(tokenizer)
    out = fit(model, rows, tokenizer, collator, tmp_path / "out", **{CHECKPOINTING: True})

    run = load_run(out)
    assert run.task.tags.names == names  # not in the order in which training would have them
    words = list(sentences[0].words)
    model.eval()
    tokens = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        expected = [names[tag] for tag in model(**tokens).logits[0].argmax(-1).tolist()]
    assert predict(run, [words])[0]["tags"] == expected
    done = CliRunner().invoke(app, ["predict", str(out), " ".join(words), "--json"])
    assert json.loads(done.stdout)["tags"] == expected


def test_masked_words_from_scratch(sentences, tokenizer, tmp_path):
    config = hf.ProbformerConfig(vocab_size=len(tokenizer), encoder=PT)
    model = transformers.AutoModelForMaskedLM.from_config(config)
    rows = [tokenizer(" ".join(sentence.words)) for sentence in sentences]
    collator = transformers.DataCollatorForLanguageModeling(
        tokenizer, mlm_probability=0.3, mask_replace_prob=1.0, random_replace_prob=0.0, seed=0
    )
    out = fit(model, rows, tokenizer, collator, tmp_path / "out")
    (own,) = predict(load_run(out), [["the", "<mask>", "."]])
    fill = transformers.pipeline("fill-mask", model=str(out), device="cpu")
    assert [guess["token_str"] for guess in fill("the <mask> .")] == list(own["masks"][0])


def test_labels_from_scratch(sentences, tokenizer, tmp_path):
    names = sorted({sentence.label for sentence in sentences})
    encoder = {**PT, "root": {"labels": 8}, "readout": "root"}
    config = hf.ProbformerConfig(
        vocab_size=len(tokenizer), encoder=encoder, id2label=dict(enumerate(names))
    )
    model = transformers.AutoModelForSequenceClassification.from_config(config)
    rows = [{**tokenizer(" ".join(s.words)), "label": names.index(s.label)} for s in sentences]
    collator = transformers.DataCollatorWithPadding(tokenizer)
    out = fit(model, rows, tokenizer, collator, tmp_path / "out")
    assert predict(load_run(out), [["she", "sleeps"]])[0]["label"] in names


def test_a_new_head_on_a_trained_encoder(hf_run, sentences, tmp_path):
    """Fine-tuning: the encoder of a language model, and tags that it never saw."""
    folder = hf_run("mlm")
    names = sorted({t for s in sentences for t in s.columns["upos"]})
    model = transformers.AutoModelForTokenClassification.from_pretrained(
        folder, id2label=dict(enumerate(names))
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    source = load_run(folder).model.encoder.state_dict()
    for name, value in model.encoder.state_dict().items():
        assert torch.equal(value, source[name])
    assert model.head.weight.shape == (len(names), 16)
    assert 0.05 < model.head.weight.std() < 0.5  # as a layer begins, not what memory held
    rows = list(tagged(sentences, tokenizer, names))
    collator = transformers.DataCollatorForTokenClassification(tokenizer)
    out = fit(model, rows, tokenizer, collator, tmp_path / "out")
    assert load_run(out).task.tags.names == names
