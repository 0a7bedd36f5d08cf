"""What producers use: an app, its tasks, and handles on the jobs they enqueue."""

from faultline.client.app import Faultline
from faultline.client.handle import Handle
from faultline.client.tasks import Task

__all__ = ["Faultline", "Handle", "Task"]
