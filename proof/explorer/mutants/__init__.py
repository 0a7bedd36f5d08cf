"""Mutants: a mechanism of the shipped SQL taken away each, and the scenario in which that must show.

An explorer that finds nothing proves little until a mutant shows what it can find.
"""

from proof.explorer.mutants import (
    of_keys,
    of_limits,
    of_moving,
    of_schedules,
    of_settling,
    of_taking,
    of_the_fence,
)  # fmt: skip
from proof.explorer.mutants.mutant import ExplorerMutant

MUTANTS: dict[str, ExplorerMutant] = {
    mutant.name: mutant
    for group in (of_the_fence, of_settling, of_taking, of_moving, of_keys, of_limits, of_schedules)
    for mutant in group.MUTANTS
}

__all__ = ["MUTANTS", "ExplorerMutant"]
