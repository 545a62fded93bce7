"""Runs in transformers and back: the same numbers to the bit, the same answers."""

import json

import pytest
import torch

from helpers.hf_runs import LINES, encoded, own_logits
from helpers.places import TESTS
from helpers.runs import PT, TRANSFORMER, saved
from probformer.config import VocabularySettings
from probformer.runs.prediction import predict
from probformer.runs.run_folder import load_run

transformers = pytest.importorskip("transformers", reason="needs the package transformers")
import probformer.hf as hf  # noqa: E402

AUTO = {
    "mlm": transformers.AutoModelForMaskedLM,
    "tagging": transformers.AutoModelForTokenClassification,
    "ner": transformers.AutoModelForTokenClassification,
    "classification": transformers.AutoModelForSequenceClassification,
}
OWN = {
    "mlm": hf.ProbformerForMaskedLM,
    "tagging": hf.ProbformerForTokenClassification,
    "ner": hf.ProbformerForTokenClassification,
    "classification": hf.ProbformerForSequenceClassification,
}
PIECES = VocabularySettings(kind="subwords", size=300)
RUNS = [
    ("mlm", "pt"),
    ("mlm", "transformer"),
    ("ner", "pt"),
    ("tagging", "transformer"),
    ("classification", "pt"),
    ("classification", "transformer"),
]
SENTENCES = [line.split() for line in LINES]


def answers(folder):
    return predict(load_run(folder), SENTENCES)


@pytest.mark.parametrize(("task", "kind"), RUNS)
def test_there_and_back(hf_run, tmp_path, task, kind):
    folder = hf_run(task, kind)
    model = AUTO[task].from_pretrained(folder)
    assert type(model) is OWN[task]
    assert not model.training
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokens, run = encoded(tokenizer), load_run(folder)
    expected = own_logits(run, tokens)
    with torch.no_grad():
        logits = model(**tokens).logits
    assert torch.equal(logits[..., : expected.shape[-1]], expected)
    if task == "mlm":
        assert logits.shape[-1] == len(run.vocabulary)
        assert (logits[..., run.vocabulary.mask] == torch.finfo(torch.float32).min).all()

    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    files = {path.name for path in tmp_path.iterdir()}
    assert files == {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    assert answers(tmp_path) == answers(folder)
    again = AUTO[task].from_pretrained(tmp_path)
    for (name, old), (other, new) in zip(
        model.state_dict().items(), again.state_dict().items(), strict=True
    ):
        assert name == other
        assert torch.equal(old, new)


@pytest.mark.parametrize("task", ["mlm", "classification", "cogs"])
@pytest.mark.parametrize("encoder", [PT, TRANSFORMER], ids=["pt", "transformer"])
def test_the_encoder_of_any_run(tmp_path, task, encoder):
    folder = saved(tmp_path / "run", task, encoder)
    model = transformers.AutoModel.from_pretrained(folder)
    tokens = encoded(transformers.AutoTokenizer.from_pretrained(folder))
    with torch.no_grad():
        found = model(**tokens)
        posterior = load_run(folder).model.encoder(
            tokens["input_ids"], tokens["attention_mask"].bool(), attention=False
        )
    assert torch.equal(found.last_hidden_state, posterior.z_scores)
    if task == "classification":
        assert torch.equal(found.pooler_output, posterior.root_scores)
    model.save_pretrained(tmp_path / "encoder")
    again = transformers.AutoModel.from_pretrained(tmp_path / "encoder")
    with torch.no_grad():
        assert torch.equal(again(**tokens).last_hidden_state, found.last_hidden_state)


def test_weights_have_the_names_and_values_of_the_run(hf_run):
    model = hf.ProbformerForMaskedLM.from_pretrained(hf_run("mlm", "transformer"))
    own = load_run(hf_run("mlm", "transformer")).model.state_dict()
    assert own.keys() == model.state_dict().keys()
    assert "head.weight" not in own  # one matrix, stored once
    with torch.no_grad():
        model.get_input_embeddings().weight[3] += 1
        tokens = {"input_ids": torch.tensor([[1, 2]])}
        changed = model(**tokens).logits
        model.get_input_embeddings().weight[3] -= 1
    assert (changed - model(**tokens).logits).abs().amax((0, 1))[3] > 1e-3  # tied still


def test_the_config_speaks_the_language_of_transformers(hf_run):
    config = transformers.AutoConfig.from_pretrained(hf_run("ner"))
    run = load_run(hf_run("ner"))
    sizes = (config.hidden_size, config.num_attention_heads, config.num_hidden_layers)
    assert sizes == (16, 2, 2)
    assert config.vocab_size == len(run.vocabulary)
    assert list(config.id2label.values()) == run.task.tags.names
    assert config.label2id[run.task.tags.names[3]] == 3
    stored = json.loads((hf_run("ner") / "config.json").read_text())
    assert config.encoder == stored["encoder"]
    assert config.encoder_settings == run.settings.encoder
    other = transformers.AutoConfig.from_pretrained(hf_run("tagging", "transformer"))
    assert (other.hidden_size, other.num_attention_heads, other.num_hidden_layers) == (16, 2, 2)


def test_a_run_without_its_settings_answers_too(hf_run, tmp_path):
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (tmp_path / name).write_bytes((hf_run("ner") / name).read_bytes())
    assert answers(tmp_path) == answers(hf_run("ner"))


@pytest.mark.parametrize(
    "vocabulary",
    [VocabularySettings(), VocabularySettings(lower=True), PIECES],
    ids=["words", "lower", "subwords"],
)
def test_the_tokenizer_finds_what_the_vocabulary_finds(tmp_path, vocabulary):
    folder = saved(tmp_path, "tagging", vocabulary=vocabulary)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    own = load_run(folder).vocabulary
    words = ["The", "dogs", "x<mask>", "<mask>", "Dogs", "naïve", "日本", ".", "<unk>"]
    ids, word_of = own.encode(words)
    assert tokenizer.is_fast
    found = tokenizer(words, is_split_into_words=True)
    assert (found["input_ids"], found.word_ids()) == (ids, word_of)
    assert tokenizer(" ".join(words))["input_ids"] == ids
    assert len(tokenizer) == len(own)
    assert (tokenizer.unk_token_id, tokenizer.mask_token_id) == (own.unk, own.mask)
    tokenizer.save_pretrained(tmp_path / "again")
    again = hf.ProbformerTokenizer.from_pretrained(tmp_path / "again")
    assert again(" ".join(words))["input_ids"] == ids


@pytest.mark.parametrize("encoder", [PT, TRANSFORMER], ids=["pt", "transformer"])
def test_subwords(tmp_path, encoder):
    """A word's tag is the one at its first piece."""
    folder = saved(tmp_path, "tagging", encoder, PIECES)
    model = transformers.AutoModelForTokenClassification.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokens = tokenizer(SENTENCES, is_split_into_words=True, padding=True, return_tensors="pt")
    with torch.no_grad():
        best = model(**tokens).logits.argmax(-1)
    for row, answer in enumerate(answers(folder)):
        word_of = tokens.word_ids(row)
        firsts = [word_of.index(word) for word in range(len(answer["words"]))]
        assert [model.config.id2label[int(best[row, at])] for at in firsts] == answer["tags"]


def test_a_stored_run_of_the_first_version():
    folder = TESTS / "fixtures" / "run-v1"
    run = load_run(folder)
    model = AUTO[run.settings.task.kind].from_pretrained(folder)
    tokens = encoded(transformers.AutoTokenizer.from_pretrained(folder))
    expected = own_logits(run, tokens)
    with torch.no_grad():
        assert torch.equal(model(**tokens).logits[..., : expected.shape[-1]], expected)
