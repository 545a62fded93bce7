"""The precision of matrix products holds within a context and is restored after it."""

from contextlib import suppress

import pytest
import torch

from helpers.runs import ready, settings
from probformer.training.precision import matrix_products, tf32_if


def state():
    return torch.backends.cuda.matmul.allow_tf32, torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize(
    ("precision", "within"),
    [("fp32", (False, False)), ("tf32", (True, False)), ("bf16", (False, True))],
)
def test_what_was_found_is_restored_after_an_error_too(precision, within, before):
    with tf32_if(before):
        found = state()
        with suppress(ZeroDivisionError), matrix_products(precision, torch.device("cpu")):
            assert state() == within
            raise ZeroDivisionError
        assert state() == found == (before, False)
    assert state() == (False, False)


def test_tf32_holds_in_the_backward_pass_and_ends_with_the_update(tmp_path):
    training = ready(settings(precision="tf32"), tmp_path)
    seen = []
    first = next(training.model.parameters())
    first.register_hook(lambda gradient: seen.append(state()))
    training._update(training.batches.of_epoch(0)[0])
    assert seen == [(True, False)]
    assert state() == (False, False)
