"""Mutants: a small breakage of the shipped SQL each, and the scenario in which the explorer must find it.

An explorer that finds nothing proves little until it is shown what it would have found.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from faultline.simulation.rewriting import Edit


@dataclass(frozen=True)
class Mutant:
    """One mechanism taken away, and where that must show."""

    name: str
    edits: tuple[Edit, ...]
    scenario: str
    breaks: str
    """The invariant that must turn out broken."""


LOCKED = "for no key update;"
SKIPPED = "for no key update skip locked"
HELD = "\n      where job.id = done.id and job.token = done.token and job.claim = done.claim"
GIVEN_BACK = "\n    and job.token = give_back.token\n    and job.claim = give_back.claim"

_OF_THE_FENCE = (
    Mutant("the fence is a plain SELECT", (("fence", LOCKED, ";"),), "rows under a fence", "NoZombie"),
    Mutant(
        "the fence is FOR KEY SHARE", (("fence", LOCKED, "for key share;"),), "rows under a fence", "Drains"
    ),
    Mutant(
        "the failure's fence is a plain SELECT",
        (("fence", LOCKED, ";"),),
        "fail",
        "NoZombie",
    ),
    Mutant(
        "fail goes past the fence",
        (("fail", "  perform faultline.fence(fail.job_id, fail.token, fail.claim);\n", ""),),
        "fail",
        "NoZombie",
    ),
    Mutant(
        "bury goes past the fence",
        (("bury", "  perform faultline.fence(bury.job_id, bury.token, bury.claim);\n", ""),),
        "bury",
        "NoZombie",
    ),
    Mutant(
        "the refusal is a warning",
        (("refuse", "raise exception 'lease lost", "raise warning 'lease lost"),),
        "rows under a fence",
        "NoZombie",
    ),
)

_OF_COMPLETION = (
    Mutant(
        "complete asks for the job alone",
        (("complete", "\n    and job.token = complete.token\n    and job.claim = complete.claim", ""),),
        "two workers",
        "NoZombie",
    ),
    Mutant(
        "complete compares the token only",
        (("complete", "\n    and job.claim = complete.claim", ""),),
        "lossy failover",
        "NoZombie",
    ),
    Mutant(
        "complete asks the clock",
        (
            (
                "complete",
                "and job.claim = complete.claim",
                "and job.claim = complete.claim and job.lease_until > faultline.now()",
            ),
        ),
        "commit with the user's rows",
        "OwnerIsOne",
    ),
    Mutant(
        "complete leaves the row where it is",
        (
            (
                "complete",
                "delete from faultline.active as job\n",
                "select job.* into done from faultline.active as job\n",
            ),
            ("complete", "\n  returning job.* into done", " for no key update"),
        ),
        "two workers",
        "OwnerIsOne",
    ),
    Mutant(
        "a batch completes by the job alone",
        (("complete_many", HELD, "\n      where job.id = done.id"),),
        "batches",
        "NoZombie",
    ),
    Mutant(
        "a batch waits for a locked row",
        (("complete_many", SKIPPED, "for no key update"),),
        "batches",
        "Drains",
    ),
    Mutant(
        "release and snooze ask for the job alone", (("give_back", GIVEN_BACK, ""),), "release", "NoZombie"
    ),
    Mutant("an unknown outcome is a plain look", (("outcome", LOCKED, ";"),), "lost reply", "NoZombie"),
)

_OF_TAKING = (
    Mutant(
        "the reaper looks first and locks later",
        (
            (
                "reap",
                "      limit reap.most\n      for no key update skip locked\n",
                "      limit reap.most\n",
            ),
        ),
        "heartbeat against reaper",
        "OwnerIsOne",
    ),
    Mutant(
        "the reaper waits for a locked row",
        (("reap", f"limit reap.most\n      {SKIPPED}", "limit reap.most\n      for no key update"),),
        "commit with the user's rows",
        "Drains",
    ),
    Mutant(
        "a claim waits for a locked row", (("claim", SKIPPED, "for no key update"),), "claimers", "Drains"
    ),
    Mutant(
        "the reaper takes leases that have not run out",
        (("reap", "and job.lease_until < moment", "and job.lease_until is not null"),),
        "heartbeat against reaper",
        "OwnerIsOne",
    ),
    Mutant(
        "reap counts no crash",
        (("reap", ", crashed => true", ""),),
        "two workers",
        "NothingLost",
    ),
    Mutant(
        "a claim does not raise the token",
        (("claim", "greatest(number, job.token + 1)", "greatest(job.token, 1)"),),
        "two workers",
        "TokenGrows",
    ),
    Mutant(
        "a claim takes what is running",
        (("claim", "and job.claim is null\n", "\n"),),
        "claimers",
        "OwnerIsOne",
    ),
    Mutant(
        "a beat asks for the job alone",
        (("heartbeat", " and job.token = beat.token and job.claim = beat.claim\n      for", "\n      for"),),
        "self-zombie",
        "NoZombie",
    ),
    Mutant(
        "a beat waits for a locked row", (("heartbeat", SKIPPED, "for no key update"),), "batches", "Drains"
    ),
)

_OF_MOVING = (
    Mutant(
        "a job that moved while it was waited for is not looked for again",
        (("hold", "    if found then\n      return place;\n    end if;", "    return place;"),),
        "cancel during promote",
        "NothingLost",
    ),
    Mutant(
        "a job is looked for without a lock",
        (
            (
                "hold",
                "from faultline.later as job where job.id = hold.job_id for update;",
                "from faultline.later as job where job.id = hold.job_id;",
            ),
        ),
        "cancel during promote",
        "NothingLost",
    ),
    Mutant(
        "promote copies and does not move",
        (
            (
                "promote",
                "    delete from faultline.later as job\n    using due\n",
                "    select job.* from faultline.later as job, due\n",
            ),
            ("promote", "where job.id = due.id\n    returning job.*", "where job.id = due.id"),
        ),
        "snooze",
        "OwnerIsOne",
    ),
    Mutant(
        "promote does not lock what it moves",
        (("promote", "    for update skip locked\n", ""),),
        "two promoters and a person",
        "Drains",
    ),
    Mutant(
        "a replayed job stays among the dead",
        (
            (
                "raise_dead",
                "delete from faultline.dead as job",
                "select job.* from faultline.dead as job",
            ),
            ("raise_dead", "any (raise_dead.ids)\n    returning job.*", "any (raise_dead.ids)"),
        ),
        "replay of the dead twice",
        "OwnerIsOne",
    ),
)

_OF_KEYS = (
    Mutant(
        "a lapsed key is taken without another look",
        (("take_key", " and named.until < moment;", ";"),),
        "a key that lapses",
        "OneEffect",
    ),
    Mutant(
        "a key lapses while its job lives",
        (
            ("take_key", "if held.until < moment then", "if held.until < moment or held.until is null then"),
            ("take_key", " and named.until < moment;", ";"),
        ),
        "a key and its completion",
        "OneEffect",
    ),
    Mutant(
        "a key that is taken by somebody gives no job",
        (
            (
                "take_key",
                "    -- A fresh statement sees who won",
                "    return null;\n    -- A fresh statement sees who won",
            ),
        ),
        "two enqueues of one key",
        "NothingLost",
    ),
)


def _named(groups: Iterable[tuple[Mutant, ...]]) -> dict[str, Mutant]:
    return {mutant.name: mutant for group in groups for mutant in group}


MUTANTS: dict[str, Mutant] = _named((_OF_THE_FENCE, _OF_COMPLETION, _OF_TAKING, _OF_MOVING, _OF_KEYS))
