"""`python -m proof.drills`: every drill; with --sabotage, every mutant, and what noticed it first."""

import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from faultline.lab.drills.registry import DRILLS
from faultline.lab.drills.run_drill import DrillRequest, rehearse, run_drills
from faultline.lab.drills.stage.drill_database import stage
from proof.drills.mutants import MUTANTS, DrillMutant

SURVIVED = 3


def main() -> int:
    """Run what was asked for; the exit code says whether it is as it should be."""
    console, wanted = Console(highlight=False), sys.argv[1:]
    if "--sabotage" in wanted:
        return sabotage(console, wanted[1] if len(wanted) > 1 else "")
    report = Path(wanted[1]) if wanted[:1] == ["--report"] else None
    return run_drills(list(DRILLS), DrillRequest(report=report), console)


def sabotage(console: Console, only: str = "") -> int:
    """Play each drill with its mechanism taken away: a verdict that stays green proves nothing."""
    table = Table(
        "drill", "sabotage", "turned red", "the first promise broken", "s", box=None, pad_edge=False
    )
    survived = [name for name in DRILLS if name not in {mutant.drill for mutant in MUTANTS}]
    for name in survived:
        console.print(f"{name}: no sabotage was written for it", style="bold red")
    for mutant in (mutant for mutant in MUTANTS if only in mutant.drill):
        began = time.monotonic()
        with console.status(f"{mutant.drill}: {mutant.name}"):
            broken = _first_broken(mutant)
        if not broken:
            survived.append(mutant.name)
        console.print(f"{'red' if broken else 'SURVIVED':<9} {mutant.drill}: {mutant.name}")
        seconds = f"{time.monotonic() - began:.1f}"
        table.add_row(mutant.drill, mutant.name, "yes" if broken else "NO", broken or "none", seconds)
    console.print()
    console.print(table)
    console.print(f"\n{len(MUTANTS)} mutants, {len(survived)} survived", style="bold")
    return SURVIVED if survived else 0


def _first_broken(mutant: DrillMutant) -> str:
    """The first promise that was found broken; a mutant that only gets stuck is noticed by that."""
    with stage(None) as place, mutant.break_workers():
        mutant.break_sql(place.dsn)
        verdict = rehearse(DRILLS[mutant.drill], place).verdict
    return verdict.broken[0].promise if verdict.broken else ""


if __name__ == "__main__":
    sys.exit(main())
