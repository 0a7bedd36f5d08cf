"""Mutants of the fence, and of the verbs that stand behind it."""

from proof.explorer.mutants.mutant import LOCKED, ExplorerMutant

MUTANTS = (
    ExplorerMutant(
        "the fence is a plain SELECT", (("fence", LOCKED, ";"),), "rows under a fence", "NoZombie"
    ),
    ExplorerMutant(
        "the fence is FOR KEY SHARE", (("fence", LOCKED, "for key share;"),), "rows under a fence", "Drains"
    ),
    ExplorerMutant(
        "the failure's fence is a plain SELECT",
        (("fence", LOCKED, ";"),),
        "fail",
        "NoZombie",
    ),
    ExplorerMutant(
        "fail goes past the fence",
        (("fail", "  perform faultline.fence(fail.job_id, fail.token, fail.claim);\n", ""),),
        "fail",
        "NoZombie",
    ),
    ExplorerMutant(
        "bury goes past the fence",
        (("bury", "  perform faultline.fence(bury.job_id, bury.token, bury.claim);\n", ""),),
        "bury",
        "NoZombie",
    ),
    ExplorerMutant(
        "the refusal is a warning",
        (("refuse", "raise exception 'lease lost", "raise warning 'lease lost"),),
        "rows under a fence",
        "NoZombie",
    ),
)
