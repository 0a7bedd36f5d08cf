"""Mutants of the verbs that end a lease."""

from faultline.simulation.mutants.mutant import LOCKED, SKIPPED, Mutant

HELD = "\n    where job.id = done.id and job.token = done.token and job.claim = done.claim"
GIVEN_BACK = "\n    and job.token = give_back.token\n    and job.claim = give_back.claim"

MUTANTS = (
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
        (("complete_many", HELD, "\n    where job.id = done.id"),),
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
    Mutant(
        "drop asks for the job alone",
        (
            (
                "drop_claimed",
                "\n    and job.token = drop_claimed.token\n    and job.claim = drop_claimed.claim",
                "",
            ),
        ),
        "drop against cancel",
        "NoZombie",
    ),
    Mutant(
        "a batch of failures goes by the job alone",
        (("fail_many", " and job.token = failed.token and job.claim = failed.claim", ""),),
        "batch of failures",
        "NoZombie",
    ),
    Mutant("an unknown outcome is a plain look", (("outcome", LOCKED, ";"),), "lost reply", "NoZombie"),
)
