"""The explorer: the shipped SQL over real sessions, in every order there is."""

from proof.explorer.exploring import explore, orders
from proof.explorer.scenario import Scenario, VerbStop
from proof.explorer.stage import ExplorerDatabase, prepare
from proof.explorer.step import Step, StepReply

__all__ = ["StepReply", "Scenario", "ExplorerDatabase", "Step", "VerbStop", "explore", "orders", "prepare"]
