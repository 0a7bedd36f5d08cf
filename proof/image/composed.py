"""compose.yaml, run with podman-compose: each service after the services that it waits for.

Without systemd podman runs no health checks by itself, and before release 4.6 it does not wait for them. So
the order and the conditions are read from the file and kept here; the rest is podman-compose's reading of it.
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import yaml

from proof.image.engine import Engine, EngineFailed
from proof.image.images import ROOT

COMPOSE = Path(sys.executable).with_name("podman-compose")
HEALTHY_SECONDS_MAX = 240.0
FINISHED = "service_completed_successfully"


@dataclass(frozen=True)
class Composed:
    """The installation of compose.yaml, without the services whose image could not be had."""

    engine: Engine
    without: frozenset[str]

    def services(self) -> Iterator[tuple[str, dict[str, Any]]]:
        known = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
        graph = {name: set(one.get("depends_on", {})) for name, one in known.items()}
        for name in TopologicalSorter(graph).static_order():
            if name not in self.without:
                yield name, known[name]

    def up(self) -> list[str]:
        """Start everything, in order; the names of what was started."""
        started = list(self.services())
        waited_for = {
            name: wish["condition"] for _, one in started for name, wish in one.get("depends_on", {}).items()
        }
        for name, service in started:
            self.compose("up", "-d", "--no-deps", "--no-build", name)
            if waited_for.get(name) == FINISHED:
                self._finished(name)
            elif service.get("healthcheck", {}).get("test"):
                self.wait_for(lambda name=name: self._is_healthy(name), f"{name} is not healthy", name)  # type: ignore[misc]
        return [name for name, _ in started]

    def down(self) -> None:
        self.compose("down", "--timeout", "10", check=False)
        # podman-compose leaves volumes of containers that ended before. The storage is ours: all may go.
        self.engine.run("podman", "volume", "prune", "--force")

    def compose(self, *words: str, check: bool = True) -> str:
        return self.engine.run(COMPOSE, "--file", ROOT / "compose.yaml", *words, check=check)

    def inside(self, name: str, *words: str, check: bool = True) -> str:
        """What a command prints in a service's container."""
        return self.engine.run("podman", "exec", self.container(name), *words, check=check)

    def container(self, name: str) -> str:
        return f"faultline_{name}_1"

    def _finished(self, name: str) -> None:
        code = self.engine.run("podman", "wait", self.container(name)).strip()
        if code != "0":
            raise EngineFailed(f"{name} ended with {code}: {self.said(name)}")

    def _is_healthy(self, name: str) -> bool:
        return not self.engine.run("podman", "healthcheck", "run", self.container(name), check=False).strip()

    def wait_for(self, what: Callable[[], bool], otherwise: str, name: str) -> None:
        give_up_at = time.monotonic() + HEALTHY_SECONDS_MAX
        while not what():
            if time.monotonic() > give_up_at:
                raise EngineFailed(f"{otherwise} after {HEALTHY_SECONDS_MAX:g} s: {self.said(name)}")
            time.sleep(1)

    def said(self, name: str) -> str:
        words = f"podman logs --tail 12 {self.container(name)} 2>&1"
        return self.engine.run("sh", "-c", words, check=False)[-1500:]
