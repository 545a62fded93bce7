"""Learning rate schedules: the rate of each step, and when training is finished."""

from __future__ import annotations

import math
from typing import Any

from probformer.config import CosineSchedule, PlateauSchedule


class Plateau:
    """The rate is multiplied by `factor` after more than `patience` epochs without improvement.

    Improvement is a better dev score, or the same with a lower loss. Training is finished once the
    rate is below `minimum`.
    """

    def __init__(self, settings: PlateauSchedule, learning_rate: float) -> None:
        self.settings = settings
        self.learning_rate = learning_rate
        self.best: tuple[float, float] | None = None
        self.bad_epochs = 0

    def rate(self, step: int) -> float:
        return self.learning_rate

    @property
    def finished(self) -> bool:
        return self.learning_rate < self.settings.minimum

    def epoch_ended(self, metrics: dict[str, float]) -> None:
        result = (metrics["score"], -metrics["loss"])
        if self.best is None or result > self.best:
            self.best, self.bad_epochs = result, 0
            return
        self.bad_epochs += 1
        if self.bad_epochs > self.settings.patience:
            self.learning_rate *= self.settings.factor
            self.bad_epochs = 0

    def state(self) -> dict[str, Any]:
        names = ("learning_rate", "best", "bad_epochs")
        return {name: getattr(self, name) for name in names}

    def load_state(self, state: dict[str, Any]) -> None:
        self.learning_rate, self.bad_epochs = state["learning_rate"], state["bad_epochs"]
        self.best = None if state["best"] is None else tuple(state["best"])


class Cosine:
    """Linear warm-up, then half a cosine down to zero at the last step."""

    finished = False

    def __init__(self, settings: CosineSchedule, learning_rate: float, steps: int) -> None:
        self.learning_rate, self.steps = learning_rate, steps
        self.warm_up = max(1, round(settings.warm_up * steps))

    def rate(self, step: int) -> float:
        if step < self.warm_up:
            return self.learning_rate * (step + 1) / self.warm_up
        done = (step - self.warm_up) / max(1, self.steps - self.warm_up)
        return self.learning_rate * (1 + math.cos(math.pi * min(done, 1))) / 2

    def epoch_ended(self, metrics: dict[str, float]) -> None:
        pass

    def state(self) -> dict[str, Any]:
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        pass


def build_schedule(
    settings: PlateauSchedule | CosineSchedule, learning_rate: float, steps: int
) -> Plateau | Cosine:
    if isinstance(settings, PlateauSchedule):
        return Plateau(settings, learning_rate)
    return Cosine(settings, learning_rate, steps)
