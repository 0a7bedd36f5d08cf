"""The app that bench workers run: handlers that do nothing but note that they began."""

from functools import cache

from faultline.bench.board import Board
from faultline.client import Faultline

app = Faultline()
board = cache(Board.of_this_process)


@app.task
async def noop(n: int, pad: str) -> None:
    """Nothing; what is measured is everything around it."""
    board().note()


@app.task
async def stamp(n: int) -> None:
    """Note the moment."""
    board().stamp(n)
