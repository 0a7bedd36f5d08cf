"""What async and plain resources share: their bounds, and what is said of one that fails."""

import logging
from typing import Final

from faultline.errors import ResourceFailed
from faultline.extensions import Resource
from faultline.telemetry import describe_error

log = logging.getLogger("faultline.worker")

OPEN_MAX: Final = 60.0
"""Seconds for which the opening of a process's resource is waited for."""

CLOSE_MAX: Final = 10.0
"""Seconds for which its closing is waited for, at the end of its worker."""


def not_opened(resource: Resource, error: BaseException) -> ResourceFailed:
    """The error of the job that asked for it."""
    return ResourceFailed(
        f"resource {resource.name} could not be opened: {type(error).__name__}: {error}"[:1_000]
    )


def tell_not_closed(resource: Resource, error: BaseException) -> None:
    """The jobs that used it have ended: there is nothing but to log it."""
    log.warning("resource %s could not be closed: %s", resource.name, describe_error(error))
