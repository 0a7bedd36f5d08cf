"""Mutants of claims, beats and the reaper: who may take what."""

from proof.explorer.mutants.mutant import SKIPPED, ExplorerMutant

MUTANTS = (
    ExplorerMutant(
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
    ExplorerMutant(
        "the reaper waits for a locked row",
        (("reap", f"limit reap.most\n      {SKIPPED}", "limit reap.most\n      for no key update"),),
        "commit with the user's rows",
        "Drains",
    ),
    ExplorerMutant(
        "a claim waits for a locked row", (("claim", SKIPPED, "for no key update"),), "claimers", "Drains"
    ),
    ExplorerMutant(
        "the reaper takes leases that have not run out",
        (("reap", "and job.lease_until < moment", "and job.lease_until is not null"),),
        "heartbeat against reaper",
        "OwnerIsOne",
    ),
    ExplorerMutant(
        "reap counts no crash",
        (("reap", ", crashed => true", ""),),
        "two workers",
        "NothingLost",
    ),
    ExplorerMutant(
        "a claim does not raise the token",
        (("claim", "greatest(number, job.token + 1)", "greatest(job.token, 1)"),),
        "two workers",
        "TokenGrows",
    ),
    ExplorerMutant(
        "a claim takes what is running",
        (("claim", "and job.claim is null\n", "\n"),),
        "claimers",
        "OwnerIsOne",
    ),
    ExplorerMutant(
        "a beat asks for the job alone",
        (("heartbeat", " and job.token = beat.token and job.claim = beat.claim\n      for", "\n      for"),),
        "self-zombie",
        "NoZombie",
    ),
    ExplorerMutant(
        "a beat waits for a locked row", (("heartbeat", SKIPPED, "for no key update"),), "batches", "Drains"
    ),
)
