"""Mutants of what moves a job between tables."""

from proof.explorer.mutants.mutant import SKIPPED, ExplorerMutant

MUTANTS = (
    ExplorerMutant(
        "a job that moved while it was waited for is not looked for again",
        (("lock_job", "    if found then\n      return place;\n    end if;", "    return place;"),),
        "cancel during promote",
        "NothingLost",
    ),
    ExplorerMutant(
        "a job is looked for without a lock",
        (
            (
                "lock_job",
                "from faultline.later as job where job.id = lock_job.job_id for update;",
                "from faultline.later as job where job.id = lock_job.job_id;",
            ),
        ),
        "cancel during promote",
        "NothingLost",
    ),
    ExplorerMutant(
        "a running job is looked for without a lock",
        (
            (
                "lock_job",
                "from faultline.active as job where job.id = lock_job.job_id for update;",
                "from faultline.active as job where job.id = lock_job.job_id;",
            ),
        ),
        "cancel against a worker",
        "NothingLost",
    ),
    ExplorerMutant(
        "rescue waits for a locked row", (("rescue", SKIPPED, "for no key update"),), "rescue", "Drains"
    ),
    ExplorerMutant(
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
    ExplorerMutant(
        "promote does not lock what it moves",
        (("promote", "    for update skip locked\n", ""),),
        "two promoters and a person",
        "Drains",
    ),
    ExplorerMutant(
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
