"""What the models of `probformer.hf` return: independent of padding, company and bookkeeping."""

import copy

import pytest
import torch

from helpers.hf_runs import LINES, encoded, name_of_checkpointing
from helpers.messages import refused
from helpers.runs import PT, TRANSFORMER

transformers = pytest.importorskip("transformers", reason="needs the package transformers")
import probformer.hf as hf  # noqa: E402

CHECKPOINTING = name_of_checkpointing(transformers)

ROOTED = {**PT, "root": {"labels": 6}}
ENCODERS = {
    "uv": PT,
    "rotary": {**PT, "potential": {"kind": "rotary", "rank": 4}},
    "marginals": {**PT, "readout": "marginals"},
    "root": {**ROOTED, "readout": "root"},
    "relative": {**TRANSFORMER, "layers": 2, "norm": "pre"},
    "learned": {**TRANSFORMER, "layers": 2, "positions": "learned", "relative": "none"},
    "sinusoidal": {**TRANSFORMER, "positions": "sinusoidal", "relative": "none"},
    "cls": {**TRANSFORMER, "positions": "learned", "relative": "none", "readout": "cls"},
}
SENTENCES = ("root", "cls")
WORDS = 30
LENGTHS = (5, 3, 1)


def model_of(name, dropout=0.0):
    """A model with some head on the encoder, in evaluation mode."""
    encoder = {**ENCODERS[name], "dropout": dropout}
    config = hf.ProbformerConfig(vocab_size=WORDS, encoder=encoder, num_labels=3)
    if name in SENTENCES:
        return hf.ProbformerForSequenceClassification(config).eval()
    return hf.ProbformerForTokenClassification(config).eval()


def masked_model(encoder, dropout=0.0):
    config = hf.ProbformerConfig(vocab_size=WORDS, encoder={**encoder, "dropout": dropout})
    return hf.ProbformerForMaskedLM(config).eval()


def batch():
    ids = torch.randint(1, WORDS - 1, (len(LENGTHS), max(LENGTHS)))
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    return ids, mask.long()


def all_outputs(model, ids, mask):
    with torch.no_grad():
        return model(
            input_ids=ids, attention_mask=mask, output_attentions=True, output_hidden_states=True
        )


@pytest.mark.parametrize("name", ENCODERS)
def test_left_and_right_padding_and_no_company_agree(name):
    model, (ids, mask) = model_of(name), batch()
    right = all_outputs(model, ids, mask)
    flipped_ids, flipped_mask = torch.zeros_like(ids), torch.zeros_like(mask)
    for row, length in enumerate(LENGTHS):
        flipped_ids[row, -length:] = ids[row, :length]
        flipped_mask[row, -length:] = 1
    left = all_outputs(model, flipped_ids, flipped_mask)
    for row, length in enumerate(LENGTHS):
        alone = all_outputs(model, ids[row : row + 1, :length], None)
        for other, place in ((right, slice(0, length)), (left, slice(-length, None))):
            if name in SENTENCES:
                torch.testing.assert_close(other.logits[row], alone.logits[0])
            else:
                torch.testing.assert_close(other.logits[row, place], alone.logits[0])
            for found, expected in zip(other.hidden_states, alone.hidden_states, strict=True):
                torch.testing.assert_close(found[row, place], expected[0])
                assert not found[row][~_at(place)].any()
            for found, expected in zip(other.attentions, alone.attentions, strict=True):
                torch.testing.assert_close(found[row, :, place, place], expected[0])


def _at(place):
    chosen = torch.zeros(max(LENGTHS), dtype=torch.bool)
    chosen[place] = True
    return chosen


@pytest.mark.parametrize("name", ENCODERS)
def test_attentions_and_hidden_states_are_those_of_the_encoder(name):
    model, (ids, mask) = model_of(name), batch()
    found = all_outputs(model, ids, mask)
    with torch.no_grad():
        posterior = model.encoder(ids, mask.bool(), trace=True)
    steps = posterior.trace
    assert len(found.attentions) == len(steps) == model.config.num_hidden_layers
    assert len(found.hidden_states) == len(steps) + 1
    for heads, step in zip(found.attentions, steps, strict=True):
        assert heads.shape == (len(LENGTHS), model.config.num_attention_heads, 5, 5)
        assert torch.equal(heads, step.head_marginals)
    for state, step in zip(found.hidden_states[1:-1], steps[:-1], strict=True):
        assert torch.equal(state, step.z_scores)
    assert torch.equal(found.hidden_states[-1], posterior.z_scores)
    if name == "uv":
        words = model.encoder.word_scores(ids) * mask.unsqueeze(-1)
        assert torch.equal(found.hidden_states[0], words)
        rows = found.attentions[-1][0].sum(-1)
        torch.testing.assert_close(rows, torch.ones_like(rows))  # distributions over heads
    bare = model(input_ids=ids, attention_mask=mask)
    assert bare.attentions is None
    assert bare.hidden_states is None
    torch.testing.assert_close(bare.logits, found.logits)


def test_tuples_and_options_of_the_config():
    model, (ids, mask) = masked_model(PT), batch()
    as_dict = model(input_ids=ids, attention_mask=mask, labels=ids)
    as_tuple = model(input_ids=ids, attention_mask=mask, labels=ids, return_dict=False)
    assert isinstance(as_tuple, tuple)
    assert torch.equal(as_tuple[0], as_dict.loss)
    assert torch.equal(as_tuple[1], as_dict.logits)
    model.config.output_attentions = model.config.output_hidden_states = True
    assert len(model(ids, mask).attentions) == 2
    base = hf.ProbformerModel(model.config)
    assert len(base(ids, mask, return_dict=False)) == 3  # last state, states, heads: no root


def test_losses_are_cross_entropies_at_targets():
    ids, mask = batch()
    labels = ids.masked_fill(mask == 0, -100)
    labels[0, :3] = -100
    model = masked_model(PT)
    found = model(ids, mask, labels=labels)
    representation = model.encoder(ids, mask.bool()).z_scores
    own = model.head(representation).log_softmax(-1)  # without the mask
    targets = labels != -100
    expected = -own[targets].gather(1, labels[targets][:, None]).mean()
    torch.testing.assert_close(found.loss, expected)
    whole = model(ids, mask, labels=labels, num_items_in_batch=torch.tensor(12)).loss
    torch.testing.assert_close(whole, expected * targets.sum() / 12)

    tagger = model_of("uv")
    tags = torch.randint(3, ids.shape).masked_fill(mask == 0, -100)
    found = tagger(ids, mask, labels=tags)
    expected = torch.nn.functional.cross_entropy(found.logits[mask == 1], tags[mask == 1])
    torch.testing.assert_close(found.loss, expected)

    classifier, label = model_of("root"), torch.tensor([0, 2, 1])
    found = classifier(ids, mask, labels=label)
    expected = torch.nn.functional.cross_entropy(found.logits, label)
    torch.testing.assert_close(found.loss, expected)


def test_labels_that_no_word_has_are_refused():
    model, (ids, mask) = masked_model(PT), batch()
    for wrong in (WORDS - 1, WORDS, -1):
        labels = ids.clone()
        labels[1, 1] = wrong
        with refused("labels", str(wrong)):
            model(ids, mask, labels=labels)


def test_what_a_model_does_not_take_is_refused():
    model, (ids, mask) = masked_model(PT), batch()
    with pytest.raises(TypeError, match="position_ids"):
        model(ids, mask, position_ids=ids)
    with refused("words", "30"):
        model(torch.tensor([[1, 30]]))
    with refused("input_ids", "(2,)"):
        model(torch.tensor([1, 2]))
    with refused("attention_mask", "(3, 5)"):
        model(ids, mask[:, 1:])


@pytest.mark.parametrize("name", ["uv", "root", "relative"])
def test_gradient_checkpointing_changes_no_value_and_no_gradient(name):
    model, (ids, mask) = model_of(name, dropout=0.3), batch()
    found = []
    for checkpointing in (False, True):
        copied = copy.deepcopy(model).train()
        if checkpointing:
            getattr(copied, f"{CHECKPOINTING}_enable")()
            assert getattr(copied, f"is_{CHECKPOINTING}")
        seen = []
        copied.encoder.register_forward_pre_hook(lambda *_, seen=seen: seen.append(1))
        torch.manual_seed(1)
        logits = copied(ids, mask).logits
        logits.square().sum().backward()
        assert len(seen) == 1 + checkpointing  # computed again on the way back
        found.append([logits, *(parameter.grad for parameter in copied.parameters())])
    for plain, saving in zip(*found, strict=True):
        assert torch.equal(plain, saving)
    getattr(copied, f"{CHECKPOINTING}_disable")()
    assert not getattr(copied, f"is_{CHECKPOINTING}")


@pytest.mark.parametrize("encoder", [PT, TRANSFORMER], ids=["pt", "transformer"])
def test_more_words(encoder, tmp_path):
    model, (ids, mask) = masked_model(encoder), batch()
    with torch.no_grad():
        model.head.bias.normal_()
        before = model(ids, mask).logits
    model.resize_token_embeddings(WORDS + 4)
    assert model.config.vocab_size == WORDS + 4
    assert model.config.mask_token_id == WORDS - 1
    with torch.no_grad():
        after = model(ids, mask).logits
        words, means = after[..., : WORDS - 1], after[..., WORDS:]
        torch.testing.assert_close(words, before[..., : WORDS - 1])
        assert (after[..., WORDS - 1] == torch.finfo(after.dtype).min).all()
        expected = words.mean(-1, keepdim=True).expand_as(means)
        if encoder is PT:
            torch.testing.assert_close(means, expected, rtol=1e-3, atol=1e-4)
        else:  # by the embeddings of the new words
            model.get_input_embeddings().weight[WORDS:].normal_()
            after = model(ids, mask, output_hidden_states=True)
            embedding, bias = model.get_input_embeddings().weight[WORDS], model.head.bias
            expected = after.hidden_states[-1] @ embedding + bias[WORDS - 1]
            torch.testing.assert_close(after.logits[..., WORDS], expected)
    ids[0, 0] = WORDS + 3
    loss = model(ids, mask, labels=ids).loss
    loss.backward()
    assert model.get_input_embeddings().weight.grad[WORDS + 3].any()
    model.save_pretrained(tmp_path)
    again = hf.ProbformerForMaskedLM.from_pretrained(tmp_path)
    with torch.no_grad():
        assert torch.equal(again(ids, mask).logits, model(ids, mask).logits)
    with refused("29"):
        model.resize_token_embeddings(WORDS - 1)
    model.resize_token_embeddings(WORDS)
    ids[0, 0] = 1
    model.resize_token_embeddings(pad_to_multiple_of=8)
    assert model(ids, mask).logits.shape[-1] == 32


@pytest.mark.parametrize("encoder", [PT, TRANSFORMER], ids=["pt", "transformer"])
def test_other_embeddings(encoder):
    """A tied head is tied to them."""
    model, (ids, mask) = masked_model(encoder), batch()
    model.set_input_embeddings(torch.nn.Embedding(WORDS, 16, _weight=torch.zeros(WORDS, 16)))
    found = model(ids, mask, output_hidden_states=True)
    assert not model.get_input_embeddings().weight.any()
    if encoder is PT:
        assert not found.hidden_states[0].any()
    else:
        assert not found.logits[..., :-1].any()


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("encoder", [PT, TRANSFORMER], ids=["pt", "transformer"])
def test_a_head_is_tied_if_the_task_says_so(encoder, tied, tmp_path):
    task = {"kind": "mlm", "tied": tied}
    config = hf.ProbformerConfig(vocab_size=WORDS, encoder=encoder, task=task)
    model, (ids, mask) = hf.ProbformerForMaskedLM(config).eval(), batch()
    assert ("head.weight" in model.state_dict()) != tied
    model.save_pretrained(tmp_path)
    again = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    assert torch.equal(again(ids, mask).logits, model(ids, mask).logits)


def test_more_words_in_the_tokenizer(hf_run):
    tokenizer = transformers.AutoTokenizer.from_pretrained(hf_run("mlm"))
    model = transformers.AutoModelForMaskedLM.from_pretrained(hf_run("mlm"))
    known = len(tokenizer)
    tokenizer.add_tokens(["glorp"])
    model.resize_token_embeddings(len(tokenizer))
    tokens = tokenizer("the glorp <mask>", return_tensors="pt")
    assert tokens["input_ids"][0].tolist()[1:] == [known, known - 1]
    assert model(**tokens).logits.shape[-1] == known + 1


@pytest.mark.parametrize("name", ENCODERS)
def test_half_precision(name):
    model, (ids, mask) = model_of(name), batch()
    exact = all_outputs(model, ids, mask)
    half = all_outputs(copy.deepcopy(model).to(torch.bfloat16), ids, mask)
    assert half.logits.dtype == torch.bfloat16
    for found, expected in ((half.logits, exact.logits), (half.attentions[0], exact.attentions[0])):
        assert torch.isfinite(found).all()
        torch.testing.assert_close(found.float(), expected, rtol=0.1, atol=0.1)
    with torch.autocast("cpu", torch.bfloat16):
        labels = torch.zeros(len(ids) if name in SENTENCES else ids.shape, dtype=torch.long)
        loss = model(ids, mask, labels=labels).loss
    loss.backward()
    assert torch.isfinite(loss)


def test_a_run_in_half_precision(hf_run):
    folder = hf_run("mlm")
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.bfloat16)
    assert model.dtype == torch.bfloat16
    tokens = encoded(transformers.AutoTokenizer.from_pretrained(folder), LINES)
    labels = tokens["input_ids"].masked_fill(tokens["attention_mask"] == 0, -100)
    labels[labels == model.config.mask_token_id] = -100
    loss = model(**tokens, labels=labels).loss
    assert torch.isfinite(loss)
