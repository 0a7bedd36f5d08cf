"""Mutants of what moves a job between tables."""

from faultline.simulation.mutants.mutant import SKIPPED, Mutant

MUTANTS = (
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
        "a running job is looked for without a lock",
        (
            (
                "hold",
                "from faultline.active as job where job.id = hold.job_id for update;",
                "from faultline.active as job where job.id = hold.job_id;",
            ),
        ),
        "cancel against a worker",
        "NothingLost",
    ),
    Mutant("rescue waits for a locked row", (("rescue", SKIPPED, "for no key update"),), "rescue", "Drains"),
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
