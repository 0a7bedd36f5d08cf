"""ClaimRequest: one claim, repeated until it is answered, whose jobs are delivered once.

A worker with nothing to do has its next claim prepared, and the wake-up itself sends it. A worker with much
to do sends its next claims behind the last one, before that is answered.
"""

import time
from collections.abc import Mapping
from operator import itemgetter
from typing import Final, Protocol

from faultline.failpoints import failpoint
from faultline.store.call import Row
from faultline.store.readers import in_line
from faultline.store.rows import AT
from faultline.worker.backend import Backend, ClaimParams, PreparedClaim
from faultline.worker.claiming.lane_cursors import LaneCursors

HEAVY_CHARS: Final = 131_072
"""Arguments of a claim that was not filled, together, from which on their weight may be why.

A claim brings so many bytes at most, over a server one mebibyte. An eighth of that is enough: where a claim
ends before it, the next one begins with a heavier job.
"""

_ARGS = itemgetter(AT.args)


class ClaimReceiver(Protocol):
    """Called once for each claim, as its reply comes: before the coroutine that awaits the claim goes on."""

    def receive(self, request: "ClaimRequest", rows: list[Row]) -> None: ...


class ClaimRequest:
    """Under one id from the first time it is sent to the last."""

    def __init__(
        self, backend: Backend, params: ClaimParams, cursors: LaneCursors, receiver: ClaimReceiver
    ) -> None:
        self.params = params
        self.sent = time.monotonic()
        """When it was sent: a lease of it lasts at least from here."""
        self.is_answered = False
        self.found_jobs = False
        """It was granted jobs, though their leases may be lost by now."""
        self.jobs = 0
        """How many it has delivered."""
        self.is_full = False
        """As many jobs came as were asked for."""
        self.may_leave_more = False
        """It is full, or as heavy as one claim may be."""
        self.stepped_over = bool(params.begins)
        """It did not begin at the floor of each lane when it was sent."""
        self.wakes = 0
        """For a prepared claim: the number of wake-ups when it was sent. Of later ones it knows nothing."""
        self.had_none = False
        """For a prepared claim: no job was in hand, or coming, when it was sent."""
        self._prepared: PreparedClaim | None = None
        self._tries = 0
        self._backend = backend
        self._cursors = cursors
        self._receiver = receiver

    @property
    def room(self) -> int:
        return self.params.max_jobs

    @property
    def begins(self) -> Mapping[int, int]:
        return self.params.begins

    def prepare(self) -> bool:
        """Encode it, to be sent later at once; False where the backend cannot do that."""
        self._prepared = self._backend.prepare_claim(self.params)
        return self._prepared is not None

    @property
    def was_sent(self) -> bool:
        """Whether it was prepared, and sent ahead of its turn."""
        return self._prepared is not None and self._prepared.was_sent

    def send(self) -> None:
        """Send a prepared claim, unless it is time to look further back than it does."""
        assert self._prepared is not None
        self.sent = time.monotonic()
        if self._cursors.is_overtaken(self.begins):
            return
        self._prepared.send(self)
        if self._prepared.was_sent:
            self.stepped_over = bool(self.begins)  # where lanes begin changes meanwhile
            self._cursors.begin(self.begins)

    async def ask(self) -> None:
        """Wait until it is answered. After an error it is unknown whether it was granted: call this again."""
        if self.is_answered:
            return  # whatever became of the connection then
        self._tries += 1
        if self._tries > 1:
            await self._ask_again()
        elif self._prepared is not None:
            await self._prepared.reply()
        else:
            failpoint("claim.sending")
            await self._backend.claim(self.params, self)

    async def _ask_again(self) -> None:
        """The same claim id gives the jobs of the lost reply, or else a new claim."""
        self.sent = time.monotonic()
        rows = await self._backend.recover_claim(self.params)
        if rows is not None:
            self.found_jobs = True
            self.take(rows)
            return
        self.sent = time.monotonic()
        failpoint("claim.sending")
        await self._backend.claim(self.params, self)

    def take(self, rows: list[Row]) -> None:
        """Deliver the jobs. The connection calls this as the reply comes, or `ask` after a lost reply."""
        self.is_answered = True
        self.jobs = len(rows)
        self.is_full = self.jobs == self.room
        if rows:
            self.found_jobs = True
            in_line(rows)
        if not self.stepped_over:
            self._cursors.looked(self.sent, is_full=self.is_full)
        self._cursors.took(rows, is_full=self.is_full, begins=self.begins)
        self._receiver.receive(self, rows)
        self.may_leave_more = self.is_full or sum(map(len, map(_ARGS, rows))) >= HEAVY_CHARS
