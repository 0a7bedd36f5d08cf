"""The explorer: the shipped SQL over real sessions, in every order there is."""

from faultline.simulation.exploring import explore, orders
from faultline.simulation.scenario import Scenario, Stop
from faultline.simulation.stage import Stage, prepare
from faultline.simulation.step import Answer, Step

__all__ = ["Answer", "Scenario", "Stage", "Step", "Stop", "explore", "orders", "prepare"]
