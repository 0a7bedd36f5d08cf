"""Mutants of keys."""

from faultline.simulation.mutants.mutant import Mutant

MUTANTS = (
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
        "a replayed job has its key back whoever has it",
        (("raise_dead", "case when named.job_id is not null then raised.key end", "raised.key"),),
        "a dead job's key",
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
