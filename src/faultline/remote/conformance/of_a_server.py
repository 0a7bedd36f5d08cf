"""The checks of a server, all of them. Each needs no more than a URL and a key."""

from typing import Final

from faultline.remote.conformance import of_fences, of_jobs, of_sessions

CHECKS: Final = (*of_sessions.CHECKS, *of_jobs.CHECKS, *of_fences.CHECKS)
