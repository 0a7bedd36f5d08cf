"""The API of producers: tasks, and handles on the jobs they enqueue."""

from faultline.client.handle import Handle
from faultline.client.task_client import Task

__all__ = ["Handle", "Task"]
