"""The scenarios: few sessions each, and every order of them is played."""

from proof.explorer.scenario import Scenario
from proof.explorer.scenarios import keys, limits, moving, ownership, schedules, settling

SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for group in (ownership, settling, moving, keys, limits, schedules)
    for scenario in group.SCENARIOS
}

__all__ = ["SCENARIOS"]
