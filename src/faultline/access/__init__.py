"""Who may come in through a server, and what they may do there: keys, callers, the doorman, acts."""

from faultline.access.acting import Acting, acting
from faultline.access.caller import LOOPBACK, SCOPES, Caller
from faultline.access.doorman import CACHE_SECONDS_MAX, LOOK_EVERY_SECONDS, Doorman
from faultline.access.keys import NewKey, mint

__all__ = [
    "CACHE_SECONDS_MAX", "LOOK_EVERY_SECONDS", "LOOPBACK", "SCOPES", "Acting", "Caller", "Doorman", "NewKey",
    "acting", "mint",
]  # fmt: skip
