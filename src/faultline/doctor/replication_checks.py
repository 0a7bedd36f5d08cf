"""Doctor's judgement of standbys, slots and the servers of a DSN. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from faultline.cli.format import span
from faultline.doctor.checks import NAMED_MAX, DoctorCheck
from faultline.doctor.replication_facts import HostFacts, ReplicationFacts, SlotFacts, StandbyFacts

BEHIND_BYTES_MAX: Final = 256 * 1024**2
LAG_SECONDS_MAX: Final = 30.0
HELD_BYTES_MAX: Final = 1024**3

WRITABLE: Final = frozenset({"read-write", "primary"})
"""The values of target_session_attrs that find the primary."""

MAY_NOT_SEE: Final = "this login may not see the state of standbys"
LET_IT_SEE: Final = "grant pg_monitor to the login that runs doctor"

_NEEDED: Final = re.compile(r"\s*(?:(?P<how>first|any)\s+)?(?P<count>\d+)\s*\(", re.IGNORECASE)


class DesiredReplication(NamedTuple):
    """The number of standbys that a commit waits for, and whether any of those named counts."""

    standbys: int
    quorum: bool


def desired_replication(names: str) -> DesiredReplication | None:
    """The meaning of synchronous_standby_names; None when commits wait for no standby.

    >>> desired_replication("ANY 2 (a, b, c)"), desired_replication("a, b"), desired_replication("")
    (DesiredReplication(standbys=2, quorum=True), DesiredReplication(standbys=1, quorum=False), None)
    """
    if not names.strip():
        return None
    if found := _NEEDED.match(names):
        return DesiredReplication(int(found["count"]), (found["how"] or "").lower() == "any")
    return DesiredReplication(1, quorum=False)


def replication(found: ReplicationFacts | None) -> DoctorCheck:
    """Whether commits wait for standbys, and whether enough of these are connected."""
    if found is None:
        return DoctorCheck("replication", "ok", "the server does not say; its provider's console does")
    asked = desired_replication(found.synchronous_standby_names)
    if asked is None:
        return _asynchronous(found)
    setting = f"synchronous_standby_names = {found.synchronous_standby_names}"
    if not found.sees_standbys:
        return DoctorCheck("replication", "warn", f"synchronous ({setting}); {MAY_NOT_SEE}", LET_IT_SEE)
    there = [standby for standby in found.standbys if _counts(standby)]
    if len(there) < asked.standbys:
        return DoctorCheck(
            "replication",
            "bad",
            f"synchronous ({setting}): each commit waits for {asked.standbys}, and {len(there)} stream; "
            "enqueues, claims and completions hang",
            "start the standbys that it names, or take them out of synchronous_standby_names",
        )
    mode = "quorum" if asked.quorum else "priority"
    spare = len(there) - asked.standbys
    also = f"{spare} to spare" if spare else "none to spare: when one goes, commits wait"
    said = f"synchronous by {mode}: commits wait for {asked.standbys} of {_listed(there)}; {also}"
    return DoctorCheck("replication", "ok", said)


def _asynchronous(found: ReplicationFacts) -> DoctorCheck:
    if not found.standbys:
        return DoctorCheck("replication", "ok", "none: no standby is connected to this server")
    said = f"asynchronous, to {_listed(found.standbys)}: a failover may lose the last moments"
    return DoctorCheck("replication", "ok", said)


def _counts(standby: StandbyFacts) -> bool:
    return standby.state == "streaming" and standby.sync_state in ("sync", "quorum", "potential")


def standbys(found: ReplicationFacts | None) -> Iterator[DoctorCheck]:
    """Whether each standby streams and keeps up; nothing where there is none."""
    if found is None or not found.standbys:
        return
    if not found.sees_standbys:
        said = f"{_listed(found.standbys)} {_are(found.standbys)} connected; {MAY_NOT_SEE}"
        yield DoctorCheck("standbys", "warn", said, LET_IT_SEE)
        return
    troubled = [standby for standby in found.standbys if _trouble(standby)]
    if not troubled:
        most = max(standby.behind_bytes or 0 for standby in found.standbys)
        said = f"{_listed(found.standbys)} {_are(found.standbys)} streaming, at most {size(most)} behind"
        yield DoctorCheck("standbys", "ok", said)
    for standby in troubled[:NAMED_MAX]:
        yield DoctorCheck(
            "standbys",
            "warn",
            f"{standby.name} {_trouble(standby)}: it would lose or delay that much in a failover",
            "look at its log, its disk and the network between; with replay paused, pg_wal_replay_resume()",
        )


def _trouble(standby: StandbyFacts) -> str:
    behind = standby.behind_bytes or 0
    lag = standby.lag_seconds or 0.0
    if standby.state != "streaming":
        return f"does not stream ({standby.state}), and is {size(behind)} behind"
    if behind > BEHIND_BYTES_MAX or lag > LAG_SECONDS_MAX:
        late = f", {span(lag)}" if lag else ""
        return f"has not replayed {size(behind)}{late} of what this server wrote"
    return ""


def slots(found: ReplicationFacts | None) -> Iterator[DoctorCheck]:
    """Whether a slot has lost its WAL, or keeps so much of it that the disk may fill."""
    if found is None or not found.held:
        return
    told = [check for slot in found.held if (check := _slot(slot))]
    if told:
        yield from told[:NAMED_MAX]
        return
    most = max(slot.held_bytes or 0 for slot in found.held)
    yield DoctorCheck("slots", "ok", f"{len(found.held)}, none holds more than {size(most)} of WAL")


def _slot(slot: SlotFacts) -> DoctorCheck | None:
    drop = f"select pg_drop_replication_slot('{slot.name}')"
    if slot.wal_status == "lost":
        said = f"{slot.name} has lost WAL that its receiver needs"
        return DoctorCheck("slots", "bad", said, f"build that standby again, or give the slot up: {drop}")
    if slot.wal_status == "unreserved":
        said = f"{slot.name} is about to lose WAL that its receiver needs"
        return DoctorCheck(
            "slots", "bad", said,
            "bring its receiver back before the next checkpoint, or raise max_slot_wal_keep_size",
        )  # fmt: skip
    if not slot.active and (slot.held_bytes or 0) > HELD_BYTES_MAX:
        said = (
            f"nothing reads {slot.name}, and it holds {size(slot.held_bytes or 0)} of WAL: the disk may fill"
        )
        return DoctorCheck("slots", "warn", said, f"bring its receiver back, or give the slot up: {drop}")
    return None


def target(known: Mapping[str, str], count: int) -> DoctorCheck | None:
    """Whether a DSN of several servers selects the one that takes writes."""
    asked = known.get("target_session_attrs") or "any"
    if count < 2:
        return None
    if asked in WRITABLE:
        return DoctorCheck("target_session_attrs", "ok", asked)
    said = f"{asked}, though the DSN names {count} servers: a connection may stay on one that takes no writes"
    return DoctorCheck("target_session_attrs", "warn", said, "add target_session_attrs=read-write to the DSN")


def hosts(found: Sequence[HostFacts]) -> Iterator[DoctorCheck]:
    """Whether exactly one of the servers that the DSN names takes writes."""
    writing = {host.identity: host.name for host in found if host.writable}
    if len(writing) > 1:
        yield DoctorCheck(
            "servers",
            "bad",
            f"{' and '.join(sorted(writing.values()))} take writes: two primaries, two histories",
            "stop the one that was not promoted last, before workers or producers reach it again",
        )
    elif not writing:
        yield DoctorCheck(
            "servers", "bad", "none of those that the DSN names takes writes", "promote one of them"
        )
    else:
        (primary,) = writing.values()
        others = [host.name for host in found if host.in_recovery]
        beside = f"; standing by: {', '.join(others)}" if others else ""
        yield DoctorCheck("servers", "ok", f"{primary} takes writes, and no other{beside}")
    for host in found:
        if host.trouble:
            said = f"{host.name} could not be asked whether it takes writes: {host.trouble}"
            yield DoctorCheck("servers", "warn", said, "start it, or take it out of the DSN")


def size(count: int) -> str:
    """Bytes as people read them.

    >>> size(512), size(3 * 1024**2), size(5 * 1024**3)
    ('0 MiB', '3 MiB', '5.0 GiB')
    """
    return f"{count / 1024**3:.1f} GiB" if count >= 1024**3 else f"{max(count, 0) / 1024**2:.0f} MiB"


def _listed(found: Sequence[StandbyFacts]) -> str:
    names = [standby.name for standby in found]
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more


def _are(found: Sequence[StandbyFacts]) -> str:
    return "is" if len(found) == 1 else "are"
