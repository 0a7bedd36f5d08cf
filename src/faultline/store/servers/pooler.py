"""A long-lived process finds out once whether a pooler is between it and the database."""

import logging
from dataclasses import replace

from faultline.config import Settings
from faultline.errors import FaultlineError
from faultline.store.driver.connect import acheck_server, aconnect

log = logging.getLogger("faultline.worker")

WITHOUT = "prepared statements and LISTEN are off, jobs are looked for by polling"


async def look_for_pooler(settings: Settings) -> Settings:
    """The settings with `auto` decided; behind a pooler, a log line says what does not work."""
    if settings.dsn is None or settings.pooler == "none":
        return settings
    if settings.pooler == "transaction":
        log.info("FAULTLINE_POOLER=transaction: %s", WITHOUT)
        return settings
    try:
        async with await aconnect(settings.dsn) as conn:
            pooled = await acheck_server(conn)
    except FaultlineError:
        return settings  # the next connection gets the same error and reports it
    if pooled:
        log.warning(
            "a pooler stands before the database: %s. Set FAULTLINE_POOLER=transaction to be told so no "
            "more, or =none where each client keeps a session of its own",
            WITHOUT,
        )
    return replace(settings, pooler="transaction" if pooled else "none")
