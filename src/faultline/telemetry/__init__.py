"""Events, their formats, and ways to listen; no vendor here.

Everything goes through the standard `logging`: events to the logger `faultline.events`, one record each.
To listen, attach a handler there, or call `listen`, which does not depend on the log's level. To see the
job of a log line of your own, `install_context()` puts `job_id`, `token` and `task` on every record made
inside a handler.
"""

from faultline.telemetry.context import current, install_context
from faultline.telemetry.events import EVENTS, emit, listen
from faultline.telemetry.formats import JsonFormatter, LineFormatter, configure_logging, logging_as_configured
from faultline.telemetry.text import describe_error, printable, scrub, shortened

__all__ = [
    "EVENTS",
    "JsonFormatter",
    "LineFormatter",
    "configure_logging",
    "current",
    "describe_error",
    "emit",
    "install_context",
    "listen",
    "logging_as_configured",
    "printable",
    "scrub",
    "shortened",
]
