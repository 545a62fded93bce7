"""Settings from TOML and Python: typed, checked, unknown keys refused by name."""

import numpy as np
import pytest

from probformer.config import (
    EncoderSettings,
    FullSettings,
    GlobalSettings,
    Inference,
    RootSettings,
    RotarySettings,
    TransformerSettings,
    UVSettings,
    from_dict,
    from_toml,
    to_dict,
)
from probformer.errors import InputError

TOML = """
labels = 128
channels = 12
dropout = 0.05
readout = "root"

[potential]
kind = "uv"
rank = 128
gamma = 0

[root]
labels = 1024

[globals]
mode = "all-dep"
features = true

[inference]
iterations = 3
lambda_z = 2
step_h = 0.8
"""


def test_toml_becomes_settings(tmp_path):
    path = tmp_path / "encoder.toml"
    path.write_text(TOML)
    assert from_toml(EncoderSettings, path) == EncoderSettings(
        labels=128,
        channels=12,
        dropout=0.05,
        readout="root",
        potential=UVSettings(rank=128, gamma=0),
        root=RootSettings(1024),
        globals=GlobalSettings("all-dep", features=True),
        inference=Inference(iterations=3, lambda_z=2.0, step_h=0.8),
    )


@pytest.mark.parametrize(
    "settings",
    [
        EncoderSettings(),
        EncoderSettings(potential=FullSettings(gamma=None), root=RootSettings(3)),
        EncoderSettings(potential=RotarySettings(), inference=Inference(tolerance=1e-3)),
        TransformerSettings(relative=8, positions="none"),
    ],
)
def test_settings_survive_a_round_trip(settings):
    values = to_dict(settings)
    assert None not in values.values()
    assert from_dict(type(settings), values) == settings


def test_no_distance_is_written_none():
    values = {"potential": {"kind": "full", "gamma": "none"}}
    assert from_dict(EncoderSettings, values).potential == FullSettings(gamma=None)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"lables": 3},
            "unknown setting lables (did you mean 'labels'?); known here: kind, labels",
        ),
        ({"inference": {"alpha": 1}}, "unknown setting inference.alpha; known here: iterations"),
        ({"potential": {"kind": "uv", "r": 3}}, "unknown setting potential.r; known here: rank"),
        ({"potential": {"kind": "uw"}}, "potential.kind must be one of 'full', 'uv', 'uvw'"),
        ({"potential": {"rank": 3}}, "potential.kind is missing; it must be one of full, uv"),
        ({"potential": 3}, "potential must be a table of settings, got 3"),
        ({"potential": {"kind": "uv", "gamma": -1}}, "potential.gamma must be a whole number"),
        ({"potential": {"kind": "rotary", "rank": 3}}, "potential.rank must be even"),
        ({"potential": {"kind": "uv", "rank": 0}}, "potential.rank must be a whole number"),
        ({"labels": 0}, "labels must be a whole number of at least 1, got 0"),
        ({"labels": 1.5}, "labels must be a whole number, got 1.5"),
        ({"labels": True}, "labels must be a whole number, got True"),
        ({"dropout": "0.1"}, "dropout must be a number, got '0.1'"),
        ({"initial_scores": 0}, "initial_scores must be a number in (0, inf), got 0"),
        ({"dropout": 1.0}, "dropout must be a number in [0, 1), got 1.0"),
        ({"readout": "root"}, "readout 'root' needs a root: give root.labels (d_root)"),
        ({"readout": "mean"}, "readout must be one of 'scores', 'marginals', 'root', got 'mean'"),
        ({"root": {}}, "missing setting root.labels"),
        ({"root": {"labels": -2}}, "root.labels must be a whole number of at least 1, got -2"),
        ({"globals": {"mode": "dep"}}, "globals.mode must be one of 'all-dep', 'dep-split'"),
        ({"globals": {"features": True}}, "globals.features goes with mode 'all-dep' alone"),
        ({"inference": {"lambda_z": 0}}, "inference.lambda_z must be a number in (0, inf), got 0"),
        ({"inference": {"lambda_h": -1}}, "inference.lambda_h must be a number in (0, inf)"),
        ({"inference": {"step_z": 0}}, "inference.step_z must be a number in (0, 1], got 0"),
        ({"inference": {"step_h": 1.1}}, "inference.step_h must be a number in (0, 1], got 1.1"),
        ({"inference": {"damping_z": 1}}, "inference.damping_z must be a number in [0, 1), got 1"),
        ({"inference": {"damping_h": -0.1}}, "inference.damping_h must be a number in [0, 1)"),
        ({"inference": {"iterations": 0}}, "inference.iterations must be a whole number"),
        ({"inference": {"tolerance": 0}}, "inference.tolerance must be a number in (0, inf)"),
        (
            {"inference": {"lambda_z": float("nan")}},
            "inference.lambda_z must be a number in (0, inf)",
        ),
        ({"inference": {"step_z": float("nan")}}, "inference.step_z must be a number in (0, 1]"),
        (
            {"inference": {"normaliser_z": "tanh"}},
            "inference.normaliser_z must be one of 'softmax'",
        ),
        ({"dropout": 10**400}, "dropout must be a number, got 1000"),
        ({"inference": {"asynchronous": 1}}, "inference.asynchronous must be true or false, got 1"),
    ],
)
def test_one_sentence_says_what_is_wrong(values, message):
    with pytest.raises(InputError) as error:
        from_dict(EncoderSettings, values)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"norm": "both"}, "norm must be one of 'post', 'pre', got 'both'"),
        ({"positions": "rotary"}, "positions must be one of"),
        ({"relative_values": True}, "relative_values needs relative"),
        ({"relative": 0}, "relative must be a whole number of at least 1, got 0"),
        ({"heads": 0}, "heads must be a whole number of at least 1, got 0"),
    ],
)
def test_transformers_too(values, message):
    with pytest.raises(InputError) as error:
        from_dict(TransformerSettings, values)
    assert message in str(error.value)


def test_files_are_named_in_messages(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text("labels = 0")
    with pytest.raises(InputError, match=r"bad\.toml: labels must be"):
        from_toml(EncoderSettings, path)
    path.write_text("labels = ")
    with pytest.raises(InputError, match=r"bad\.toml: cannot be read as TOML"):
        from_toml(EncoderSettings, path)
    with pytest.raises(InputError, match=r"missing\.toml: cannot be read"):
        from_toml(EncoderSettings, tmp_path / "missing.toml")


def test_settings_from_python_are_checked_too():
    with pytest.raises(InputError, match=r"step_z must be a number in \(0, 1\], got 2"):
        Inference(step_z=2)
    with pytest.raises(InputError, match="iterations must be a whole number"):
        Inference(iterations=2.0)
    for values, message in [
        ({"potential": "uv"}, "potential must be a table of settings, got 'uv'"),
        ({"potential": None}, "potential must be a table of settings, got None"),
        ({"root": 3}, "root must be a table of settings, got 3"),
        ({"kind": "foo"}, "kind must be one of 'pt', got 'foo'"),
    ]:
        with pytest.raises(InputError, match=message):
            EncoderSettings(**values)
    with pytest.raises(InputError, match="tied must be true or false, got 'no'"):
        TransformerSettings(tied="no")
    with pytest.raises(InputError, match="asynchronous must be true or false, got 0"):
        Inference(asynchronous=0.0)
    assert EncoderSettings(inference={"iterations": 3}).inference == Inference(iterations=3)
    assert UVSettings(rank=np.int64(3)).rank == 3
    with pytest.raises(InputError, match="values must be of kind Mapping, got NoneType"):
        from_dict(EncoderSettings, None)
    with pytest.raises(InputError, match="path must be of kind str or Path, got NoneType"):
        from_toml(EncoderSettings, None)
