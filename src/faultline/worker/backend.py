"""Backend: the work that a worker asks of its database, or of a server that stands before one."""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from faultline.config import WorkerConfig
from faultline.lease import Lease
from faultline.outcome import Outcome
from faultline.store.call import Row
from faultline.store.driver.async_connection import Heard
from faultline.store.rows import AT, HeartbeatResult, SettleRefusal, SyncedSchedule
from faultline.store.session import ReplyHandler
from faultline.task import Registry
from faultline.worker.attempt import Attempt
from faultline.worker.heartbeat.lease_table import LeaseTable
from faultline.worker.transactions.transaction_base import TransactionPools

LeaseName = tuple[int, int]
"""A lease by its job and token: enough for questions about it, not for writes."""


@dataclass(frozen=True, slots=True)
class ClaimParams:
    """What one claim asks for."""

    claim: UUID = field(repr=False)
    queues: Sequence[str]
    max_jobs: int
    begins: Mapping[int, int] = field(default_factory=dict)
    """The first place to look at in each lane, where that is not the lane's floor; by 0 in all of them."""
    trace: str | None = None
    except_tasks: Sequence[str] = ()
    freed: Sequence[int] = ()
    """Gates of limits at which this worker's leases have ended: the claim looks at them first."""


class PreparedClaim(Protocol):
    """A claim that is encoded in advance, so that `send` only writes it to the socket."""

    @property
    def was_sent(self) -> bool: ...

    def send(self, handler: ReplyHandler) -> None:
        """Send it; nothing is sent while another call uses the connection."""
        ...

    async def reply(self) -> object:
        """Wait until the handler has the jobs; the errors are those of `Backend.claim`."""
        ...


@dataclass(frozen=True, slots=True)
class PacemakerSpec:
    """Which program is the pacemaker, and what it needs to reach its database or server."""

    module: str
    address: dict[str, Any] = field(repr=False)
    """Sent over a pipe, never on a command line: it may hold a password, or an API key."""


class Backend(Protocol):
    """A worker has one, and closes it when it leaves.

    Each verb that works on jobs raises CannotConnect when nothing was sent, and ServerUnavailable when it is
    unknown whether the call was carried out.
    """

    @property
    def peer_name(self) -> str:
        """The name of the other side, as the first words of a line in a worker's log."""
        ...

    @property
    def listens(self) -> bool:
        """Whether wake-ups can arrive; without them there is only the poll."""
        ...

    def open(self, config: WorkerConfig) -> None:
        """Make the connections' objects for a worker like this; each connects at its first use."""
        ...

    async def check_server(self) -> None:
        """Raise, with the reason and the remedy, unless a worker can work with the other side."""
        ...

    async def register(self, name: str, tasks: Sequence[str] | None) -> int:
        """Enter this worker into the list of workers; its number goes with every later call.

        Its claims give jobs of these tasks only, or of every task with None.
        """
        ...

    async def know_tasks(self, tasks: Sequence[str] | None) -> None:
        """Name the tasks again: there are more now."""
        ...

    async def declare_limits(self, tasks: Registry) -> int:
        """Tell the limits of the app, before anything is claimed; gives how many jobs were moved to gates."""
        ...

    async def sync_schedules(
        self, app: str, release: Sequence[int], specs: Sequence[dict[str, Any]]
    ) -> list[SyncedSchedule]:
        """Bring the schedules of an app to those of its code."""
        ...

    async def warm_up(self) -> None:
        """Connect, and have the server plan its statements, before there is anything to record."""
        ...

    async def listen(self, heard: Heard, pause: Callable[[], float]) -> None:
        """Call `heard` with each queue that may have work, until cancelled."""
        ...

    async def claim(self, params: ClaimParams, handler: ReplyHandler) -> None:
        """Claim jobs; the handler gets their rows, in the columns of `ClaimedRow`, as the reply comes."""
        ...

    def prepare_claim(self, params: ClaimParams) -> PreparedClaim | None:
        """Encode a claim in advance; None where that is of no use, or not possible now."""
        ...

    async def recover_claim(self, params: ClaimParams) -> list[Row] | None:
        """The jobs of a claim whose reply was lost, as far as their leases still hold: these are renewed.

        None if it was never granted.
        """
        ...

    async def heartbeat(self, leases: Sequence[Lease]) -> list[HeartbeatResult]:
        """Renew these leases now, beside the pacemaker; with no lease, only a sign of life."""
        ...

    async def settle_many(self, attempts: list[Attempt]) -> list[SettleRefusal]:
        """Record attempts with the same kind of outcome, all Done or all Failed; returns the refused ones."""
        ...

    async def settle(self, lease: Lease, outcome: Outcome) -> str | None:
        """Record one outcome, or raise LeaseLost; of some it says whether the job is `dead` now."""
        ...

    async def outcome(self, lease: Lease) -> str:
        """How this lease ended, by the rows: `running`, an outcome, or `gone` when no row tells."""
        ...

    async def outcome_in(self, lease: Lease) -> str:
        """The same of a lease that its handler settled in its own transaction; `busy` while that is open."""
        ...

    async def note_error(self, lease: Lease, error: str) -> bool:
        """Keep what a handler raised after its success; False where that is not kept."""
        ...

    async def record_refusal(self, lease: Lease) -> tuple[str, int | None]:
        """Record that the fence refused this lease; returns the reason and the job's newest token."""
        ...

    async def newest_place(self) -> int | None:
        """The newest place of a job in any lane; None where it cannot be told."""
        ...

    async def others_serve(self, queue: str) -> bool:
        """Whether other workers serve this queue."""
        ...

    async def recovery_seconds(self, leases: Sequence[LeaseName]) -> list[float]:
        """For metrics: the seconds from the end of a crashed attempt to each of these claims."""
        ...

    async def zombie_seconds(self, leases: Sequence[LeaseName]) -> list[float]:
        """For metrics: the seconds for which each of these refused leases had a successor."""
        ...

    async def deregister(self) -> None:
        """Enter that this worker has stopped."""
        ...

    def pacemaker(self) -> PacemakerSpec: ...

    def transaction_pools(
        self, lease_table: LeaseTable, config: WorkerConfig, loop: AbstractEventLoop
    ) -> TransactionPools:
        """The connections that handlers borrow in job.complete."""
        ...

    async def close(self) -> None: ...


def still_held(rows: list[Row], beats: Sequence[HeartbeatResult]) -> list[Row]:
    """The claimed rows whose leases a heartbeat has just found held."""
    held = {beat.job_id for beat in beats if beat.answer in ("held", "busy")}
    return [row for row in rows if row[AT.id] in held]


def leases_of(rows: list[Row], claim: UUID) -> list[Lease]:
    """The leases of claimed rows, in the order of a heartbeat."""
    return sorted(Lease(row[AT.id], row[AT.token], claim, 0.0, 0.0) for row in rows)
