"""Mutants of the fence, and of the verbs that stand behind it."""

from faultline.simulation.mutants.mutant import LOCKED, Mutant

MUTANTS = (
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
