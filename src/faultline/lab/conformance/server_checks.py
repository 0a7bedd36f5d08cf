"""The checks of a server, all of them. Each needs no more than a URL and a key."""

from typing import Final

from faultline.lab.conformance import fence_checks, job_checks, session_checks

CHECKS: Final = (*session_checks.CHECKS, *job_checks.CHECKS, *fence_checks.CHECKS)
