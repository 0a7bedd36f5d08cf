"""Mutants of keys."""

from proof.explorer.mutants.mutant import ExplorerMutant

MUTANTS = (
    ExplorerMutant(
        "a lapsed key is taken without another look",
        (("take_key", " and named.until < moment;", ";"),),
        "a key that lapses",
        "OneEffect",
    ),
    ExplorerMutant(
        "a key lapses while its job lives",
        (
            ("take_key", "if held.until < moment then", "if held.until < moment or held.until is null then"),
            ("take_key", " and named.until < moment;", ";"),
        ),
        "a key and its completion",
        "OneEffect",
    ),
    ExplorerMutant(
        "a replayed job has its key back though another job has it",
        (("raise_dead", "case when named.job_id is not null then raised.key end", "raised.key"),),
        "a dead job's key",
        "OneEffect",
    ),
    ExplorerMutant(
        "a key that is taken gives no job",
        (
            (
                "take_key",
                "    -- A new statement sees the winner",
                "    return null;\n    -- A new statement sees the winner",
            ),
        ),
        "two enqueues of one key",
        "NothingLost",
    ),
    ExplorerMutant(
        "a job that is unique while queued is found without a lock",
        (
            (
                "take_queued",
                "and job.claim is null\n        and (job.expires_at is null or job.expires_at > moment)\n"
                "      for share skip locked;",
                "and job.claim is null;",
            ),
        ),
        "enqueue while queued against a claim",
        "SeesCommit",
    ),
)
