"""What a model is trained for: one file a task, all behind the protocol in `task.py`."""

from probformer.tasks.build import build_task
from probformer.tasks.task import Batch, Task

__all__ = ["Batch", "Task", "build_task"]
