"""The calibration error, by hand and of predictions whose error is known."""

from collections import Counter

import numpy as np
import pytest

from helpers.messages import refused
from probformer.data.calibration import (
    CalibrationBin,
    calibration_bins,
    calibration_error,
    count_calibration,
)


def test_the_error_is_the_one_computed_by_hand():
    first = count_calibration([0.0, 1.0, 0.5], [False, True, False])
    second = count_calibration([0.05, 0.95], [True, True])
    counts = Counter(first)
    counts.update(second)
    used = {name: value for name, value in counts.items() if value}
    assert used == {
        "ece_00_count": 2,
        "ece_00_confidence": 0.05,
        "ece_00_right": 1,
        "ece_07_count": 1,
        "ece_07_confidence": 0.5,
        "ece_14_count": 2,
        "ece_14_confidence": 1.95,
        "ece_14_right": 2,
    }
    assert calibration_error(counts) == pytest.approx((0.95 + 0.5 + 0.05) / 5)


def test_bins_are_equal_parts_with_their_lower_limit():
    limits = np.arange(16) / 15
    counts = count_calibration(limits, np.zeros(16))
    assert [counts[f"ece_{i:02}_count"] for i in range(15)] == [1] * 14 + [2]
    assert count_calibration([1 + 1e-6], [True])["ece_14_count"] == 1
    below = count_calibration(limits[1:] - 1e-9, np.zeros(15))
    assert [below[f"ece_{i:02}_count"] for i in range(15)] == [1] * 15


def test_each_bin_has_its_means():
    bins = calibration_bins(count_calibration([0.5, 0.51, 0.52, 0.95], [True, False, True, False]))
    assert [(x.low, x.high) for x in bins] == [(i / 15, (i + 1) / 15) for i in range(15)]
    assert [number for number, x in enumerate(bins) if x.count] == [7, 14]
    assert bins[7] == CalibrationBin(7 / 15, 8 / 15, 3, pytest.approx(0.51), 2 / 3)
    assert bins[14] == CalibrationBin(14 / 15, 1.0, 1, 0.95, 0)
    assert bins[0] == CalibrationBin(0, 1 / 15, 0, None, None)


@pytest.mark.parametrize("gap", [0, 0.1, 0.3])
def test_predictions_too_sure_by_a_gap_have_it_as_their_error(gap):
    chance = np.random.default_rng(0)
    p = chance.uniform(0.3, 1, size=200_000)
    right = chance.random(p.shape) < p - gap
    assert calibration_error(count_calibration(p, right)) == pytest.approx(gap, abs=0.005)


def test_nothing_to_count():
    assert calibration_error(Counter()) == 0
    assert [x.count for x in calibration_bins(Counter())] == [0] * 15
    assert calibration_error(count_calibration([], [])) == 0


@pytest.mark.parametrize(
    ("confidences", "right"),
    [([0.5, 0.2], [True]), ([[0.5]], [[True]]), ([1.1], [True]), ([-0.1], [0]), ([np.nan], [0])],
)
def test_what_is_no_probability_of_a_prediction_is_refused(confidences, right):
    with refused("confidences"):
        count_calibration(confidences, right)
