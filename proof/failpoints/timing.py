"""How long things take here: short leases, so that a fault is over soon, and generous limits."""

from datetime import timedelta
from typing import Final

LEASE: Final = timedelta(seconds=1)
GRACE: Final = timedelta(milliseconds=300)

FROZEN_SECONDS: Final = 2.5
"""How long a process stays frozen: longer than a lease and what it takes to notice."""

CALM_SECONDS: Final = 1.5
"""How long a victim may beat for its last jobs before it is asked to leave: some points come only then."""

REACHED_SECONDS_MAX: Final = 40.0
DRAIN_SECONDS_MAX: Final = 60.0
LEAVE_SECONDS_MAX: Final = 20.0
