"""One compiled graph serves all lengths, at a fixed number of iterations."""

import shutil

import pytest
import torch

from helpers.messages import refused
from helpers.models import build, random_batch
from probformer import Encoder, Inference, Transformer, mean_field
from probformer.config import EncoderSettings, RootSettings, TransformerSettings

# The compiler itself does to autograd functions what they warn of.
pytestmark = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")


class CountingBackend:
    def __init__(self):
        self.graphs = 0

    def __call__(self, module, inputs):
        self.graphs += 1
        return module.forward


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def check(potentials, inference, dropout=0.0):
    backend = CountingBackend()
    compiled = torch.compile(mean_field, backend=backend, fullgraph=True, dynamic=True)
    # Three sentences: PyTorch takes sizes that are equal in the first call to be equal always.
    for lengths in ((2, 2, 1), (3, 2, 2), (5, 5, 1), (9, 1, 3), (40, 7, 2)):
        unary, mask = random_batch(lengths)
        post = compiled(unary, mask, potentials, inference, dropout)
        if not dropout:
            expected = mean_field(unary, mask, potentials, inference)
            torch.testing.assert_close(post.z_scores, expected.z_scores)
            torch.testing.assert_close(post.head_marginals, expected.head_marginals)
    assert backend.graphs == 1


def long(*values):
    return [pytest.param(value, marks=pytest.mark.long) for value in values]


@pytest.mark.parametrize(
    "words", ["uv", "rotary", *long("full", "uv-blind", "uv-direction", "uvw", "shared-uv")]
)
def test_every_word_potential(words):
    check(build(words), Inference(iterations=2))


@pytest.mark.parametrize("extras", ["root", "all-dep", "dep-split", "root-single-split"])
@pytest.mark.parametrize("asynchronous", [True, *long(False)])
def test_every_extra(extras, asynchronous):
    inference = Inference(
        iterations=2,
        asynchronous=asynchronous,
        step_z=0.5,
        step_h=0.5,
        damping_z=0.1,
        damping_h=0.1,
    )
    check(build("uv", extras), inference)


def test_dropout():
    check(build("uv"), Inference(iterations=2), dropout=0.1)


def test_the_encoder_with_gradients():
    settings = EncoderSettings(
        labels=6, channels=2, root=RootSettings(4), inference=Inference(iterations=2)
    )
    encoder, backend = Encoder(11, settings), CountingBackend()
    compiled = torch.compile(encoder, backend=backend, fullgraph=True, dynamic=True)
    for n in (2, 3, 8, 30):
        words = torch.randint(11, (3, n))
        mask = torch.ones(3, n, dtype=torch.bool)
        encoder.zero_grad()
        compiled(words, mask).root_scores.square().sum().backward()
        actual = encoder.potentials.root.T.grad.clone()
        encoder.zero_grad()
        encoder(words, mask).root_scores.square().sum().backward()
        torch.testing.assert_close(actual, encoder.potentials.root.T.grad)
    assert backend.graphs == 1


@pytest.mark.parametrize(
    "settings",
    [TransformerSettings(width=8, layers=1), TransformerSettings(width=8, layers=1, relative=2)],
    ids=["learned", "relative"],
)
def test_transformers(settings):
    model, backend = Transformer(11, settings), CountingBackend()
    compiled = torch.compile(model, backend=backend, fullgraph=True, dynamic=True)
    for n in (2, 4, 9, 30):
        words, mask = torch.randint(11, (3, n)), torch.ones(3, n, dtype=torch.bool)
        expected = model(words, mask).z_scores
        torch.testing.assert_close(compiled(words, mask).z_scores, expected)
    assert backend.graphs == 1


def test_shapes_are_checked_in_compiled_code_too():
    compiled = torch.compile(mean_field, backend=CountingBackend(), dynamic=True)
    unary, mask = random_batch((4, 2, 3))
    for wrong in (mask[:1], mask[:, :1]):
        with refused("mask"):
            compiled(unary, wrong, build())


@pytest.mark.long
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler: g++")
@pytest.mark.filterwarnings("default")  # the code generator's own warnings are not ours
@pytest.mark.parametrize("words", ["uv", "rotary"])
def test_generated_code_computes_the_same(words):
    torch.use_deterministic_algorithms(False)
    potentials = build(words, "root", torch.float32)
    compiled = torch.compile(mean_field, fullgraph=True, dynamic=True)
    for lengths in ((3, 2), (9, 1)):
        unary, mask = random_batch(lengths, dtype=torch.float32)
        unary.requires_grad_()
        results = []
        for run in (compiled, mean_field):
            scores = run(unary, mask, potentials, Inference(iterations=1)).z_scores
            results.append((scores, *torch.autograd.grad(scores.square().sum(), unary)))
        for actual, expected in zip(*results, strict=True):
            torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)
