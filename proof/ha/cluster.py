"""The cluster: three Patroni nodes, three etcd members, HAProxy and PgBouncer."""

import json
import shutil
import signal
import time
import urllib.request
from pathlib import Path
from typing import Any, Final

from proof.ha import settings
from proof.ha.addresses import ETCD, ETCD_IP, NODES
from proof.ha.processes import Processes, TookTooLong, is_open, postmaster_of, signal_all, wait_for
from proof.ha.programs import Programs

LEADS: Final = ("leader", "master", "primary")
HEALTH_SECONDS_MAX: Final = 180.0


class Cluster:
    """A running cluster in a folder; its nodes are called a, b and c."""

    def __init__(self, home: Path, programs: Programs, major: int) -> None:
        self.home = home
        self.binaries = programs.postgres[major]
        self.programs = programs
        self.processes = Processes(home, programs)

    # the parts

    def up(self) -> str:
        """Start everything; the node that leads."""
        for index in range(len(ETCD)):
            self.start_etcd(index)
        time.sleep(2)
        for node in NODES:
            self.start_node(node)
            wait_for(self.leader, 90, "a first leader")
        leader = wait_for(self.healthy, HEALTH_SECONDS_MAX, "every node streams")
        self._start_proxies()
        return leader

    def down(self) -> None:
        self.processes.kill_all()
        for node in NODES:
            signal_all(self.postgres_of(node), signal.SIGKILL)

    def start_etcd(self, index: int) -> None:
        name, port = ETCD[index]
        folder = self.home / name
        words = settings.etcd(name, port, folder, new=not folder.exists())
        self.processes.serve(name, [self.programs.etcd, *words])

    def stop_etcd(self) -> None:
        self.processes.kill(*(name for name, _ in ETCD))

    def etcd_answers(self) -> bool:
        """Whether any member takes connections."""
        return any(is_open(ETCD_IP, port) for _, port in ETCD)

    def start_node(self, node: str) -> None:
        config = self.home / f"patroni-{node}.json"
        config.write_text(json.dumps(settings.patroni(node, self.home, self.binaries), indent=1))
        self.processes.serve(self._patroni(node), [self.programs.python, "-m", "patroni", config], node=node)

    def _start_proxies(self) -> None:
        haproxy, pgbouncer, users = (self.home / name for name in ("haproxy.cfg", "pgbouncer.ini", "users"))
        haproxy.write_text(settings.haproxy())
        users.write_text(settings.pgbouncer_users())
        pgbouncer.write_text(settings.pgbouncer(users))
        self.processes.serve("haproxy", [self.programs.haproxy, "-f", haproxy, "-db"])
        self.processes.serve("pgbouncer", [self.programs.pgbouncer, pgbouncer])

    # what can be done to a node

    def kill_node(self, node: str) -> None:
        """The machine dies: Patroni and every process of PostgreSQL, by SIGKILL."""
        family = self.postgres_of(node)
        self.processes.kill(self._patroni(node))
        signal_all(family, signal.SIGKILL)

    def forget_node(self, node: str) -> None:
        """A node that is down loses its data: Patroni copies the leader's when it starts again."""
        shutil.rmtree(self.home / f"data-{node}")

    def freeze_node(self, node: str, *, patroni: bool = True) -> None:
        """The machine stands still: no process runs, but its kernel still acknowledges packets."""
        signal_all(self._family(node, patroni=patroni), signal.SIGSTOP)

    def thaw_node(self, node: str) -> None:
        signal_all(reversed(self._family(node)), signal.SIGCONT)

    def stands_still(self, node: str) -> bool:
        """Whether the kernel says of every process of its PostgreSQL that it is stopped."""
        family = self.postgres_of(node)
        states = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in family]
        return bool(family) and set(states) == {"T"}

    def _family(self, node: str, *, patroni: bool = True) -> list[int]:
        own = self.processes.pid(self._patroni(node)) if patroni else None
        return [*([own] if own else []), *self.postgres_of(node)]

    def postgres_of(self, node: str) -> list[int]:
        return postmaster_of(self.home / f"data-{node}")

    def _patroni(self, node: str) -> str:
        return f"patroni-{node}"

    # Patroni's view

    def leader(self) -> str | None:
        """The node that says it leads; None while there is none."""
        return next((node for node in NODES if self._ask(node, "/primary", seconds=1) is not None), None)

    def members(self) -> list[dict[str, Any]]:
        for node in NODES:
            if (told := self._ask(node, "/cluster")) is not None:
                return list(told.get("members", []))
        return []

    def healthy(self) -> str | None:
        """The leader, when the others stream on its timeline."""
        members = self.members()
        leaders = [member for member in members if member.get("role") in LEADS]
        if len(leaders) != 1 or leaders[0]["state"] != "running":
            return None
        timeline = leaders[0].get("timeline")
        streams = [
            member
            for member in members
            if (member["state"], member.get("timeline")) == ("streaming", timeline)
        ]
        return str(leaders[0]["name"]) if len(streams) == len(NODES) - 1 else None

    def recovered(self) -> str:
        """The leader once all nodes are back, or what is missing."""
        try:
            return wait_for(self.healthy, HEALTH_SECONDS_MAX, "all nodes are back")
        except TookTooLong as error:
            return f"{error}: {[(member['name'], member['state']) for member in self.members()]}"

    def configure(self, **shared: object) -> None:
        """Change Patroni's shared settings, as `patronictl edit-config` does."""
        for node in NODES:
            if self._ask(node, "/config", shared, method="PATCH", seconds=5) is not None:
                return
        raise TookTooLong("no node took the settings")

    def switch_over(self, leader: str, candidate: str) -> None:
        wanted = {"leader": leader, "candidate": candidate}
        if self._ask(leader, "/switchover", wanted, method="POST", seconds=60) is None:
            raise TookTooLong(f"no switchover from {leader} to {candidate}")

    def _ask(
        self, node: str, path: str, body: object = None, *, method: str = "GET", seconds: float = 2
    ) -> dict[str, Any] | None:
        """What a node's Patroni answers; None where it refuses or cannot be reached."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://{NODES[node]}:8008{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=seconds) as reply:
                text = reply.read()
        except OSError:
            return None
        return dict(json.loads(text)) if text[:1] == b"{" else {}


def prepare_home(home: Path, programs: Programs) -> None:
    """A folder that the servers' account owns, and may enter."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    programs.account.own(home)
    home.chmod(0o755)
