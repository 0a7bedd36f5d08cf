"""False histories of a real job: each changes a true one, and must be refused by the promise it breaks.

Each is about a job that was lost once and then succeeded, as the lease race leaves it: an `expired` entry, a
`succeeded` one, and its own rows.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from proof.model.history import Effect, JobHistory, Row


@dataclass(frozen=True, slots=True)
class Forgery:
    """The change, and the name that must be found."""

    says: str
    expects: str
    forge: Callable[[JobHistory], JobHistory]


def fits(history: JobHistory) -> bool:
    """Whether this is the kind of history that the forgeries are about."""
    ends = [entry.outcome for entry in history.entries]
    return ends == ["expired", "succeeded"] and bool(history.effects)


def _succeeds_twice(true: JobHistory) -> JobHistory:
    won = true.entries[-1]
    again = replace(won, token=won.token + 1, claim="another claim", claimed_at=won.settled_at)
    return replace(true, entries=(*true.entries, again))


def _zombie_succeeds(true: JobHistory) -> JobHistory:
    lost, won = true.entries
    return replace(true, entries=(replace(lost, outcome="succeeded", crashes=0), won))


def _zombie_wrote(true: JobHistory) -> JobHistory:
    stray = Effect("a late write", true.entries[0].token)
    return replace(true, effects=(*(true.effects or ()), stray))


def _wrote_twice(true: JobHistory) -> JobHistory:
    return replace(true, effects=(true.effects or ()) * 2)


def _wrote_nothing(true: JobHistory) -> JobHistory:
    return replace(true, effects=())


def _token_stays(true: JobHistory) -> JobHistory:
    lost, won = true.entries
    effects = tuple(replace(effect, token=lost.token) for effect in true.effects or ())
    return replace(true, entries=(lost, replace(won, token=lost.token)), effects=effects)


def _claim_used_again(true: JobHistory) -> JobHistory:
    lost, won = true.entries
    return replace(true, entries=(lost, replace(won, claim=lost.claim)))


def _leases_overlap(true: JobHistory) -> JobHistory:
    lost, won = true.entries
    return replace(true, entries=(lost, replace(won, claimed_at=lost.claimed_at)))


def _comes_back(true: JobHistory) -> JobHistory:
    won = true.entries[-1]
    return replace(true, rows=(Row("queued", won.token, None, won.attempt, won.crashes),))


def _end_forgotten(true: JobHistory) -> JobHistory:
    return replace(true, entries=true.entries[:-1], effects=None)


def _crash_not_counted(true: JobHistory) -> JobHistory:
    return replace(true, entries=tuple(replace(entry, crashes=0) for entry in true.entries))


def _attempt_given_back(true: JobHistory) -> JobHistory:
    lost, won = true.entries
    return replace(true, entries=(lost, replace(won, attempt=lost.attempt)))


FORGERIES: Final = (
    Forgery("the job succeeds a second time, under a higher token", "OneEffect", _succeeds_twice),
    Forgery("the lease that was lost succeeded too", "OneEffect", _zombie_succeeds),
    Forgery("the lease that was lost committed a row", "NoZombie", _zombie_wrote),
    Forgery("the work was committed twice", "OneEffect", _wrote_twice),
    Forgery("the success left no work behind", "OneEffect", _wrote_nothing),
    Forgery("the second lease has the token of the first", "TokenGrows", _token_stays),
    Forgery("the second lease has the claim id of the first", "OwnerIsOne", _claim_used_again),
    Forgery("the second lease begins while the first is held", "OwnerIsOne", _leases_overlap),
    Forgery("the finished job stands in the queue", "TerminalStays", _comes_back),
    Forgery("the job did not end, and is nowhere", "NothingLost", _end_forgotten),
    Forgery("the crash is not counted", "Next", _crash_not_counted),
    Forgery("the crash gives its attempt back", "Next", _attempt_given_back),
)
