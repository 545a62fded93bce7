"""The authors' own implementation, as numbers: fourteen cases in values and gradients."""

from pathlib import Path

import pytest
import torch

from probformer import mean_field
from probformer.testing import load_case

CASES = sorted((Path(__file__).parent / "golden").glob("*.npz"))


def test_all_cases_are_here():
    assert len(CASES) == 14


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_values_and_gradients(path, dtype, tolerance):
    case = load_case(path, dtype)
    post = mean_field(case.unary, case.mask, case.potentials, case.inference)

    def assert_close(actual, expected):
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)

    assert_close(post.z_scores[case.mask], case.expected["z_scores"][case.mask])
    if "q_h" in case.expected:
        rows = case.mask & (case.mask.sum(1, keepdim=True) > 1)
        channels_last = post.head_marginals.transpose(1, 2)
        assert_close(channels_last[rows], case.expected["q_h"].transpose(1, 2)[rows])
    output = post.z_scores
    if "root_scores" in case.expected:
        output = post.root_scores
        assert_close(output, case.expected["root_scores"])

    (output * case.expected["cotangent"]).sum().backward()
    assert_close(case.unary.grad[case.mask], case.gradients["unary"][case.mask])
    for name, parameter in case.parameters.items():
        assert_close(parameter.grad, case.gradients[name])
