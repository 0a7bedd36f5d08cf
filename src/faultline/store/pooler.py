"""Whether a pooler stands before the database, found out once by a process that is to live long."""

import logging
from dataclasses import replace

from faultline.config import Settings
from faultline.errors import FaultlineError
from faultline.store.connect import aconnect, agreet

log = logging.getLogger("faultline.worker")

WITHOUT = "prepared statements and LISTEN are off, jobs are looked for by polling"


async def look_for_pooler(settings: Settings) -> Settings:
    """The settings with `auto` decided; and a line about what does not work behind a pooler."""
    if settings.dsn is None or settings.pooler == "none":
        return settings
    if settings.pooler == "transaction":
        log.info("FAULTLINE_POOLER=transaction: %s", WITHOUT)
        return settings
    try:
        async with await aconnect(settings.dsn) as conn:
            pooled = await agreet(conn)
    except FaultlineError:
        return settings  # the next connection meets the same, and says so
    if pooled:
        log.warning(
            "a pooler stands before the database: %s. Set FAULTLINE_POOLER=transaction to be told so no "
            "more, or =none where each client keeps a session of its own",
            WITHOUT,
        )
    return replace(settings, pooler="transaction" if pooled else "none")
