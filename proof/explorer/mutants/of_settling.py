"""Mutants of the verbs that end a lease."""

from typing import Final

from proof.explorer.mutants.mutant import LOCKED, SKIPPED, ExplorerMutant

HELD = "\n    where job.id = done.id and job.token = done.token and job.claim = done.claim"
GIVEN_BACK = "\n    and job.token = give_back.token\n    and job.claim = give_back.claim"

RETURNED: Final = (
    "\n  returning job.created_at, job.claimed_at, job.claim, job.lane, job.claimed_by, job.attempt,"
    " job.max_attempts, job.crashes,\n            job.task, job.key, job.args,"
    " (select lane.keep from faultline.lanes as lane where lane.id = job.lane) as keep\n  into done"
)

MUTANTS = (
    ExplorerMutant(
        "complete asks for the job alone",
        (("complete", "\n    and job.token = complete.token\n    and job.claim = complete.claim", ""),),
        "two workers",
        "NoZombie",
    ),
    ExplorerMutant(
        "complete compares the token only",
        (("complete", "\n    and job.claim = complete.claim", ""),),
        "lossy failover",
        "NoZombie",
    ),
    ExplorerMutant(
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
    ExplorerMutant(
        "complete leaves the row where it is",
        (
            (
                "complete",
                "delete from faultline.active as job\n",
                "select job.*, lane.keep into done from faultline.active as job"
                " join faultline.lanes as lane on lane.id = job.lane\n",
            ),
            ("complete", RETURNED, "\n  for no key update of job"),
        ),
        "two workers",
        "OwnerIsOne",
    ),
    ExplorerMutant(
        "a batch completes by the job alone",
        (("complete_many", HELD, "\n    where job.id = done.id"),),
        "batches",
        "NoZombie",
    ),
    ExplorerMutant(
        "a batch waits for a locked row",
        (("complete_many", SKIPPED, "for no key update"),),
        "batches",
        "Drains",
    ),
    ExplorerMutant(
        "release and snooze ask for the job alone", (("give_back", GIVEN_BACK, ""),), "release", "NoZombie"
    ),
    ExplorerMutant(
        "drop asks for the job alone",
        (
            (
                "cancel_claimed",
                "\n    and job.token = cancel_claimed.token\n    and job.claim = cancel_claimed.claim",
                "",
            ),
        ),
        "drop against cancel",
        "NoZombie",
    ),
    ExplorerMutant(
        "a batch of failures goes by the job alone",
        (("fail_many", " and job.token = failed.token and job.claim = failed.claim", ""),),
        "batch of failures",
        "NoZombie",
    ),
    ExplorerMutant(
        "an unknown outcome is a plain look", (("outcome", LOCKED, ";"),), "lost reply", "NoZombie"
    ),
)
