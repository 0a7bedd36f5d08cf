"""When schedules are due: cron expressions, periods, moments; and the schedules in an app's code."""

from faultline.schedules.cron import Cron
from faultline.schedules.schedule_info import BackfilledOccurrence, Occurrence, ScheduleInfo
from faultline.schedules.schedule_spec import ScheduleSpec, release_numbers
from faultline.schedules.timing import At, Every, Timing, at, every, timing_from, timing_of

__all__ = [
    "At",
    "BackfilledOccurrence",
    "Cron",
    "Every",
    "Occurrence",
    "ScheduleInfo",
    "ScheduleSpec",
    "Timing",
    "at",
    "every",
    "release_numbers",
    "timing_from",
    "timing_of",
]
