"""All mutants, in the order in which they are told."""

from proof.mutants import (
    of_access,
    of_before_the_key,
    of_cancels,
    of_clocks,
    of_crashes,
    of_fair_shares,
    of_metrics,
    of_ownership,
    of_refusals,
    of_the_api,
    of_the_cases,
    of_the_commit,
    of_the_doors,
    of_the_fence,
    of_the_remote_worker,
    of_the_server,
    of_the_worker,
    of_time,
)
from proof.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *of_ownership.MUTANTS,
    *of_the_fence.MUTANTS,
    *of_time.MUTANTS,
    *of_clocks.MUTANTS,
    *of_crashes.MUTANTS,
    *of_the_commit.MUTANTS,
    *of_the_worker.MUTANTS,
    *of_refusals.MUTANTS,
    *of_the_cases.MUTANTS,
    *of_access.MUTANTS,
    *of_metrics.MUTANTS,
    *of_the_remote_worker.MUTANTS,
    *of_the_server.MUTANTS,
    *of_the_api.MUTANTS,
    *of_cancels.MUTANTS,
    *of_the_doors.MUTANTS,
    *of_fair_shares.MUTANTS,
    *of_before_the_key.MUTANTS,
)
