"""What a worker has in hand: jobs to be started, jobs running, and how much room is left."""

import asyncio
import time
from collections import Counter, deque

from faultline.config import WorkerConfig
from faultline.worker.board import Board
from faultline.worker.hand import Hand

SLOTS_SPARE = 512
"""Room on the board beyond buffer and runners, for outcomes that are still to be settled."""

RATE_WINDOW = 0.05


class Shelf:
    """Where feeder, runners, settler and overseer meet; it decides nothing but how much is wanted."""

    def __init__(self, config: WorkerConfig) -> None:
        self.config = config
        self.board = Board.make(config.jobs_max + config.buffer_max + SLOTS_SPARE)
        self.buffer: deque[Hand] = deque()
        self.running: set[Hand] = set()
        self.in_queue: Counter[str] = Counter()
        """How many jobs are in hand of each queue that has a limit of its own."""
        self.abandoned: list[Hand] = []
        """Those whose threads would not stop: each costs a runner, and no second attempt starts beside it."""
        self.left: int | None = None
        """How many more jobs may be taken at all, where somebody asked for so many."""
        self.filled = asyncio.Event()
        self.hungry = asyncio.Event()
        self.woken = asyncio.Event()
        """There may be work: somebody enqueued some, or a queue with a limit has room again."""
        self.listening = False
        """Wake-ups can be heard, so there is no need to look often."""
        self._limited = frozenset(queue for queue, limit in config.queues.items() if limit is not None)
        self.settled_count = 0
        self.finished_count = 0
        self._rate = 0.0
        self._low_mark = 0
        self._measured = (time.monotonic(), 0)

    @property
    def in_hand(self) -> int:
        return self.board.slots - self.board.room

    def put(self, hand: Hand) -> None:
        if hand.job.queue in self._limited:
            self.in_queue[hand.job.queue] += 1
        self.buffer.append(hand)

    def at_work_on(self) -> dict[int, Hand]:
        """Every job an attempt of which is here, started or to be started, by its number."""
        return {hand.lease.job_id: hand for hand in (*self.buffer, *self.running, *self.abandoned)}

    def abandon(self, hand: Hand) -> None:
        self.abandoned.append(hand)

    def came_back(self, hand: Hand) -> None:
        self.abandoned.remove(hand)
        self.ask_for_more()

    def drop(self, hand: Hand) -> None:
        """The lease has ended, one way or another; said twice, it has ended once."""
        if not hand.generation:
            return
        hand.generation = 0
        self.board.wipe(hand.slot)
        self.settled_count += 1
        self.ask_for_more()
        if hand.job.queue in self._limited:
            self.in_queue[hand.job.queue] -= 1
            self.woken.set()

    def wanted(self) -> int:
        """How many more jobs to claim: for the free runners, plus what they finish in about 100 ms.

        Never more than fits, and nothing while more than half of that is still there: a few large claims cost
        less than many small ones.
        """
        ahead = self._ahead()
        self._low_mark = ahead // 2
        if len(self.buffer) > self._low_mark:
            return 0
        free = self.config.jobs_max - len(self.running) - len(self.abandoned)
        most = self.board.room if self.left is None else min(self.board.room, self.left)
        return max(0, min(free + ahead - len(self.buffer), most, self.config.buffer_max))

    def ask_for_more(self) -> None:
        """Wake the feeder when the buffer runs low; told after each job taken and each lease that ended."""
        if len(self.buffer) <= self._low_mark:
            self.hungry.set()

    def _ahead(self) -> int:
        at, count = self._measured
        elapsed = time.monotonic() - at
        if elapsed >= RATE_WINDOW:
            self._rate = (self.finished_count - count) / elapsed
            self._measured = (time.monotonic(), self.finished_count)
        elif self.finished_count - count > self.config.jobs_max:
            # Faster than we thought, and the window is not over: do not starve the runners until it is.
            self._rate = max(self._rate, (self.finished_count - count) / max(elapsed, 0.001))
        ahead = int(self._rate * self.config.prefetch_for.total_seconds())
        return min(ahead, self.config.buffer_max)
