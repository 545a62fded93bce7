"""Tasks: what a model is trained and evaluated for, one file each; the protocol is in `task.py`."""

from probformer.tasks.build import MakeTask, build_auxiliary, build_task
from probformer.tasks.objective import Objective
from probformer.tasks.task import Batch, Task

__all__ = ["Batch", "MakeTask", "Objective", "Task", "build_auxiliary", "build_task"]
