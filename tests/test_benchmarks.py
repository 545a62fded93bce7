"""What is measured is what it says it is."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import candidates
import performance


@pytest.mark.parametrize("name", ["UV", "Full"])
def test_the_dense_einsums_compute_the_same_as_the_encoder(name):
    sizes = candidates.Sizes(d=24, h=3, T=2, gamma=2, r=5)
    shape = candidates.Shape(2, 9, dropout=0.0, device=torch.device("cpu"), sizes=sizes)
    dense = candidates.CANDIDATES[f"{name} as dense einsums"](shape)
    model = candidates.CANDIDATES[name](shape)
    encoder = model.model
    encoder.word_scores.weight.data = dense.word_scores.weight.data
    for parameter, factor in zip(encoder.potentials.parameters(), dense.factors, strict=True):
        order = (0, 2, 3, 1)  # (k, a, c, l or b) -> (k, c, l or b, a)
        parameter.data = factor.data.permute(order)
    words = torch.randint(candidates.VOCABULARY, (2, 9))
    mask = torch.ones(2, 9, dtype=torch.bool)
    with torch.no_grad():
        torch.testing.assert_close(dense(words, mask), model(words, mask), rtol=1e-4, atol=1e-5)


def test_the_page_has_a_table_a_shape_and_a_plot(tmp_path, monkeypatch):
    """A tiny plan on this machine."""
    models = ("UV", "Rotary", "Transformer")
    tiny = performance.Plan(
        cases=(performance.Case(1, 5, models),),
        modes=("eager",),
        base=(1, 4),
        growth={"n": (3, 5)},
        growing=models,
        bf16=False,
    )
    monkeypatch.setitem(performance.PLANS, "cpu", tiny)
    monkeypatch.setattr(performance, "peak_memory", lambda *_: 2**20)
    monkeypatch.setattr(sys, "argv", ["performance.py", "--repeats", "1", "--docs", str(tmp_path)])
    performance.main()
    page = (tmp_path / "performance.md").read_text(encoding="utf-8")
    assert "### 1 × 5 words, d 384, h 16, T 5" in page
    for name in ("UV", "Rotary", "Transformer", "necessary products of UV"):
        assert f"| {name} | eager | " in page
    assert "<svg" in (tmp_path / "performance/cpu-growth.svg").read_text(encoding="utf-8")
