"""The stage: a cluster that lasts from scenario to scenario, and a ground for each of them."""

import shutil
import tempfile
from pathlib import Path

from proof.ha.cluster import Cluster, prepare_home
from proof.ha.facts import HaFacts
from proof.ha.ground import HaDatabase, OnCluster
from proof.ha.judge import Judgement
from proof.ha.play import Played, Tell, play
from proof.ha.processes import TookTooLong
from proof.ha.programs import Programs
from proof.ha.scenarios import HaScenario


class Stage:
    """The cluster, made when the first scenario needs it and made again when it does not recover."""

    def __init__(self, folder: Path, programs: Programs, major: int) -> None:
        self._folder = folder
        self._programs = programs
        self._major = major
        self._cluster: Cluster | None = None

    def play(self, scenario: HaScenario, tell: Tell, *, server: bool) -> Played:
        ground: HaDatabase | None = None
        try:
            ground = self._ground(scenario, tell)
            ground.ready(scenario.sync)
            return play(scenario, ground, self._programs, self._folder, tell, server=server)
        except (TookTooLong, RuntimeError, OSError) as error:
            self.close()
            return _not_played(scenario, self._folder, str(error))
        finally:
            if ground is not None:
                ground.close()

    def _ground(self, scenario: HaScenario, tell: Tell) -> HaDatabase:
        if scenario.ground is not None:
            home = Path(tempfile.mkdtemp(prefix="servers-", dir=self._folder))
            home.chmod(0o755)
            made: HaDatabase = scenario.ground(home / scenario.name, self._programs, self._major)
            return made
        if self._cluster is None:
            tell("starting the cluster")
            self._cluster = _cluster(self._folder / "cluster", self._programs, self._major)
        self._cluster.configure(failsafe_mode=scenario.settings.get("failsafe_mode"))
        return OnCluster(self._cluster)

    @property
    def has_cluster(self) -> bool:
        return self._cluster is not None

    def close(self) -> None:
        """End the cluster; its logs stay, its data does not."""
        if self._cluster is not None:
            self._cluster.down()
            self._cluster = None
        for data in (*self._folder.glob("cluster/data-*"), *self._folder.glob("cluster/e?")):
            shutil.rmtree(data, ignore_errors=True)


def _cluster(home: Path, programs: Programs, major: int) -> Cluster:
    prepare_home(home, programs)
    cluster = Cluster(home, programs, major)
    try:
        cluster.up()
        OnCluster(cluster).prepare()
    except BaseException:
        cluster.down()
        raise
    return cluster


def _not_played(scenario: HaScenario, folder: Path, why: str) -> Played:
    place = folder / f"{scenario.name}-not-played"
    place.mkdir(parents=True, exist_ok=True)
    return Played(scenario, place, Judgement((), (why,)), HaFacts(0.0, ()))
