"""The right to work on one job until a moment."""

from typing import Any, NamedTuple, Protocol
from uuid import UUID


class Held(Protocol):
    """The name of a lease: the three values in every write of a worker."""

    @property
    def job_id(self) -> int: ...

    @property
    def token(self) -> int: ...

    @property
    def claim(self) -> UUID: ...


class Lease(NamedTuple):
    """What a claim granted: the only thing that can write to the job from here on.

    A tuple, because a worker makes tens of thousands a second. Its claim id is a capability and
    stays out of the repr, so that no log line or traceback can give it away.

    >>> Lease(7, 3, UUID(int=1), lease_for=15.0, taken_at=100.0)
    Lease(job_id=7, token=3)
    """

    job_id: int
    token: int
    claim: UUID
    lease_for: float
    """Seconds the lease lasts after each beat."""
    taken_at: float
    """Our monotonic clock just *before* the claim was sent: never later than the database's count."""

    @property
    def runs_out_at(self) -> float:
        """The monotonic moment after which an unrenewed lease may belong to another worker."""
        return self.taken_at + self.lease_for

    @property
    def proof(self) -> dict[str, Any]:
        """The three values every write of a worker must name.

        >>> sorted(Lease(7, 3, UUID(int=1), 15.0, 100.0).proof)
        ['claim', 'job_id', 'token']
        """
        return {"job_id": self.job_id, "token": self.token, "claim": self.claim}

    def __repr__(self) -> str:
        return f"Lease(job_id={self.job_id}, token={self.token})"
