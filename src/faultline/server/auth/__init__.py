"""Authentication and rights of requests: keys, callers, the Authenticator, acts."""

from faultline.server.auth.acting import Acting, acting
from faultline.server.auth.api_keys import NewKey, mint
from faultline.server.auth.authenticator import CACHE_SECONDS_MAX, LOOK_EVERY_SECONDS, Authenticator
from faultline.server.auth.caller import LOOPBACK, SCOPES, Caller
from faultline.server.auth.credentials import Credentials

__all__ = [
    "CACHE_SECONDS_MAX", "LOOK_EVERY_SECONDS", "LOOPBACK", "SCOPES", "Acting", "Authenticator", "Caller",
    "Credentials", "NewKey",
    "acting", "mint",
]  # fmt: skip
