"""The app of the measurement: jobs that outlast an outage."""

import asyncio
import time

from faultline import Faultline

app = Faultline()


@app.task
def grind(seconds: float) -> None:
    """In a thread, which nothing can stop: it goes on without its lease."""
    time.sleep(seconds)


@app.task
async def doze(seconds: float) -> None:
    """On the loop: it is stopped before its lease ends, and given back."""
    await asyncio.sleep(seconds)
