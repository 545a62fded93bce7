"""Settings from TOML and Python: typed, checked, unknown keys refused by name."""

from dataclasses import replace

import numpy as np
import pytest

from helpers.messages import refused
from helpers.runs import ready, settings
from outside.one_root import OneRoot
from outside.sharper import sharper
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
    to_toml,
)

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
    ("values", "named"),
    [
        ({"lables": 3}, "lables"),
        ({"inference": {"alpha": 1}}, "inference.alpha"),
        ({"potential": {"kind": "uv", "r": 3}}, "potential.r"),
        ({"potential": {"kind": "uw"}}, "potential.kind"),
        ({"potential": {"rank": 3}}, "potential.kind"),
        ({"potential": 3}, "potential"),
        ({"potential": {"kind": "uv", "gamma": -1}}, "potential.gamma"),
        ({"potential": {"kind": "rotary", "rank": 3}}, "potential.rank"),
        ({"potential": {"kind": "uv", "rank": 0}}, "potential.rank"),
        ({"labels": 0}, "labels"),
        ({"labels": 1.5}, "labels"),
        ({"labels": True}, "labels"),
        ({"dropout": "0.1"}, "dropout"),
        ({"initial_scores": 0}, "initial_scores"),
        ({"dropout": 1.0}, "dropout"),
        ({"readout": "root"}, "readout"),
        ({"readout": "mean"}, "readout"),
        ({"root": {}}, "root.labels"),
        ({"root": {"labels": -2}}, "root.labels"),
        ({"globals": {"mode": "dep"}}, "globals.mode"),
        ({"globals": {"features": True}}, "globals.features"),
        ({"inference": {"lambda_z": 0}}, "inference.lambda_z"),
        ({"inference": {"lambda_h": -1}}, "inference.lambda_h"),
        ({"inference": {"step_z": 0}}, "inference.step_z"),
        ({"inference": {"step_h": 1.1}}, "inference.step_h"),
        ({"inference": {"damping_z": 1}}, "inference.damping_z"),
        ({"inference": {"damping_h": -0.1}}, "inference.damping_h"),
        ({"inference": {"iterations": 0}}, "inference.iterations"),
        ({"inference": {"tolerance": 0}}, "inference.tolerance"),
        ({"inference": {"lambda_z": float("nan")}}, "inference.lambda_z"),
        ({"inference": {"step_z": float("nan")}}, "inference.step_z"),
        ({"inference": {"normaliser_z": "tanh"}}, "inference.normaliser_z"),
        ({"dropout": 10**400}, "dropout"),
        ({"inference": {"asynchronous": 1}}, "inference.asynchronous"),
    ],
)
def test_one_sentence_says_what_is_wrong(values, named):
    with refused(named):
        from_dict(EncoderSettings, values)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"norm": "both"}, "norm"),
        ({"positions": "rotary"}, "positions"),
        ({"relative_values": True}, "relative_values"),
        ({"relative": 0}, "relative"),
        ({"heads": 0}, "heads"),
    ],
)
def test_transformers_too(values, named):
    with refused(named):
        from_dict(TransformerSettings, values)


def test_files_are_named_in_messages(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text("labels = 0")
    with refused("bad.toml", "labels"):
        from_toml(EncoderSettings, path)
    path.write_text("labels = ")
    with refused("bad.toml", "TOML"):
        from_toml(EncoderSettings, path)
    with refused("missing.toml"):
        from_toml(EncoderSettings, tmp_path / "missing.toml")


def test_settings_from_python_are_checked_too():
    with refused("step_z"):
        Inference(step_z=2)
    with refused("iterations"):
        Inference(iterations=2.0)
    for values, named in [
        ({"potential": "uv"}, "potential"),
        ({"potential": None}, "potential"),
        ({"root": 3}, "root"),
        ({"kind": "foo"}, "kind"),
    ]:
        with refused(named):
            EncoderSettings(**values)
    with refused("tied"):
        TransformerSettings(tied="no")
    with refused("asynchronous"):
        Inference(asynchronous=0.0)
    assert EncoderSettings(inference={"iterations": 3}).inference == Inference(iterations=3)
    assert UVSettings(rank=np.int64(3)).rank == 3
    with refused("values"):
        from_dict(EncoderSettings, None)
    with refused("path"):
        from_toml(EncoderSettings, None)


def test_objects_of_python_cannot_be_written(tmp_path):
    with refused("inference.heads", "OneRoot"):
        to_toml(EncoderSettings(inference=Inference(heads=OneRoot())))
    given = settings()
    inference = replace(given.encoder.inference, normaliser_z=sharper)
    with refused("encoder.inference.normaliser_z", "sharper"):
        ready(replace(given, encoder=replace(given.encoder, inference=inference)), tmp_path / "run")
    assert not (tmp_path / "run").exists()
