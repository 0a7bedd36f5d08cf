"""One claim, as often as it has to be asked for: when a reply is lost, the same claim id gives the same jobs.

Of a worker with nothing to do the next one lies ready, and the wake-up itself sends it. Of one with much to
do the next ones are sent behind it, before it is answered.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from uuid import UUID, uuid4

from faultline.failpoints import reach
from faultline.store.call import Call, Row
from faultline.store.line import Early
from faultline.store.rows import Claimed, in_line
from faultline.worker.doors import Carrier
from faultline.worker.memory import Memory
from faultline.worker.shelf import Shelf

Take = Callable[[list[Row], UUID, float], None]
"""Given jobs, the claim that granted them, and when that was sent."""

Follow = Callable[[], None]
"""Told that a claim came back full, when its jobs are on the shelf."""


class Claim:
    """Under one id from the first time it is sent to the last."""

    def __init__(
        self, line: Carrier, shelf: Shelf, memory: Memory, room: int, take: Take, follow: Follow
    ) -> None:
        self.id = uuid4()
        self.sent = time.monotonic()
        self.rows: list[Row] = []
        """Its jobs, when they are on the shelf."""
        self.is_answered = False
        self.call: Call[list[Claimed]] | None = None
        """What is asked, where it was put down before it was sent; the next two are of such a one."""
        self.wakes = 0
        """How many wake-ups there were when it was sent: of what came later it can know nothing."""
        self.had_none = False
        """Nothing was in hand, or coming, when it was sent."""
        self.begins: Mapping[int, int] = {}
        """Where it begins in each lane, if not at the floor."""
        self.stepped_over = False
        """It did not begin at the floor when it was sent: where lanes begin changes meanwhile."""
        self._early: Early | None = None
        self.room = room
        self._line = line
        self._shelf = shelf
        self._memory = memory
        self._take = take
        self._follow = follow
        self._tries = 0

    def put_down(self, call: Call[list[Claimed]], begins: Mapping[int, int]) -> bool:
        """Have it ready to be sent; False where the line cannot do that."""
        self.call, self.begins = call, begins
        self._early = self._line.early(call)
        return self._early is not None

    @property
    def was_sent(self) -> bool:
        """Whether it was sent ahead of its turn."""
        return self._early is not None and self._early.was_sent

    def send(self, coming: int = 0) -> None:
        """Send what was put down, unless it is time to look further back than it does.

        So many jobs are coming, by claims that are under way.
        """
        assert self._early is not None
        self.sent = time.monotonic()
        if self._memory.is_overtaken(self.begins):
            return
        self.wakes, self.had_none = self._shelf.wakes, self._shelf.in_hand + coming == 0
        self._early.send(self)
        if self._early.was_sent:
            self.stepped_over = bool(self.begins)
            self._memory.begin(self.begins)

    @property
    def is_late(self) -> bool:
        """The first reply was lost, so nobody knows how much of a lease is left."""
        return self._tries > 1

    async def ask(self, call: Call[list[Claimed]]) -> list[Row]:
        if self.rows:
            return self.rows  # it was answered, whatever became of the line then
        self._tries += 1
        if self._tries == 1 and self._early is not None:
            return await self._early.reply()
        if self._tries == 1:
            reach("claim.sending")
            return await self._line.fetch(call, self)
        # The first may be granted: the same claim id gives the same jobs, or a new claim.
        if kept := await self._line.fetch(_again(call)):
            return kept
        self.sent = time.monotonic()
        reach("claim.sending")
        return await self._line.fetch(call)

    def take(self, rows: list[Row]) -> None:
        """Said by the line, in the moment of the reply: whoever awaits the claim comes to it later."""
        self.is_answered = True
        self.rows = in_line(rows)
        self._memory.took(rows, is_full=len(rows) == self.room, begins=self.begins)
        if rows:
            self._take(rows, self.id, self.sent)
        if len(rows) == self.room:
            self._follow()


def _again(call: Call[list[Claimed]]) -> Call[list[Claimed]]:
    return replace(call, args=call.args | {"again": True})
