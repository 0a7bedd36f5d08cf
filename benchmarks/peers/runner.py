"""Order the phases and the systems, and write the JSON; runs inside the comparison's own environment."""

import json
import platform
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from benchmarks.peers import failures, machine, options, places
from benchmarks.peers.one_row import one_row
from benchmarks.peers.options import Options
from benchmarks.peers.peer import Absent, Peer, admin
from benchmarks.peers.pickup import latency
from benchmarks.peers.services import services
from benchmarks.peers.steady import offered, sustained
from benchmarks.peers.throughput import drain, is_short, middle_of, single

Phase = Callable[[Peer, Options], dict[str, Any]]

STEPS: dict[str, Phase] = {
    "single": single,
    "drain1": partial(drain, workers=1),
    "drain2": partial(drain, workers=2),
    "latency": latency,
    "sustained": sustained,
    "offered": offered,
    "one_row": one_row,
}
ERROR_LENGTH = 1500


class Record:
    """The JSON as it grows; written after every step, so that a broken run leaves what it had."""

    def __init__(self, asked: Options, peers: list[Peer], absent: dict[str, str]) -> None:
        self._out = asked.out
        self._turn = threading.Lock()
        self.data: dict[str, Any] = {
            "started": time.strftime("%F %T"),
            "commit": _commit(),
            "machine": machine.describe(),
            **_server(),
            "config": asked.told(),
            "meta": {peer.name: peer.meta for peer in peers},
            "absent": absent,
            "throughput": {peer.name: [] for peer in peers},
            "crash": {},
            "zombie": {},
            "zombie_mid": {},
        }

    def note(self, phase: str, peer: Peer, row: dict[str, Any]) -> None:
        """Say a result on the terminal and save everything so far."""
        figures = " ".join(f"{name}={_short(value)}" for name, value in row.items())
        print(f"[{time.strftime('%T')}] {phase} {peer.name}: {figures}", file=sys.stderr, flush=True)
        self.save()

    def save(self) -> None:
        with self._turn:
            self.data["ended"] = time.strftime("%F %T")
            text = json.dumps(self.data, indent=1, default=str) + "\n"
            text = anonymous(text)
            self._out.parent.mkdir(parents=True, exist_ok=True)
            self._out.write_text(text)


def anonymous(text: str) -> str:
    """Without this machine's paths and name: logs and tracebacks must not carry them into the repository."""
    paths = {places.HOME: "$BENCH_HOME", places.ROOT: "$ROOT", sys.base_prefix: "$PYTHON"}
    for path, name in paths.items():
        text = text.replace(str(path), name)
    host = re.escape(platform.node() or "localhost")
    return re.sub(rf"(?<=@){host}\b|\b{host}(?=:\d)", "host", text)


def _short(value: Any) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)[:300]


def _commit() -> str:
    """Which Faultline was measured."""
    words = ["git", "-C", str(places.ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:
        return ""


def _server() -> dict[str, Any]:
    names = [
        "fsync", "synchronous_commit", "shared_buffers", "max_wal_size", "max_connections", "autovacuum",
        "full_page_writes", "wal_sync_method",
    ]  # fmt: skip
    with admin() as conn:
        version = conn.execute("select version() as version").fetchone()
        shown = conn.execute(
            "select name, current_setting(name) as value from unnest(%s::text[]) as name", [names]
        )
        assert version is not None
        settings = {row["name"]: row["value"] for row in shown}
    return {"postgres": version["version"], "pg_settings": settings}


def find_peers(asked: Options) -> tuple[list[Peer], dict[str, str]]:
    """The systems asked for, and those of them that cannot run here, with the reason."""
    present: list[Peer] = []
    absent: dict[str, str] = {}
    for index, (key, path) in enumerate(options.systems().items()):
        if asked.systems and key not in asked.systems:
            continue
        try:
            peer = Peer(path, index)
            if any(peer.takes_part(phase) for phase in asked.phases):
                peer.make_template()
                present.append(peer)
        except (Absent, RuntimeError) as error:
            absent[key] = str(error)[:ERROR_LENGTH]
            print(f"absent: {key}: {error}", file=sys.stderr, flush=True)
    return present, absent


def measure(record: Record, peers: list[Peer], asked: Options) -> None:
    """Each repeat: a phase after the other, and within it all systems in random order.

    So a slow drift of the machine hits all alike.
    """
    steps = [(name, step) for name, step in STEPS.items() if name in asked.phases]
    for repeat in range(asked.repeats if steps else 0):
        rows: dict[str, dict[str, Any]] = {peer.name: {} for peer in peers}
        for name, row in rows.items():
            record.data["throughput"][name].append(row)
        for name, step in steps:
            there = [peer for peer in peers if peer.takes_part(name)]
            turns: dict[str, list[dict[str, Any]]] = {peer.name: [] for peer in there}
            for turn in range(asked.turns):
                again = [peer for peer in there if not turn or is_short(turns[peer.name][0], name, asked)]
                for peer in random.sample(again, len(again)):
                    turns[peer.name].append(one_step(name, step, peer, asked))
                    record.note(f"repeat {repeat + 1} {name}", peer, turns[peer.name][-1])
            for peer in there:
                rows[peer.name].update(middle_of(turns[peer.name], name))
            record.save()


def one_step(name: str, step: Phase, peer: Peer, asked: Options) -> dict[str, Any]:
    quietness = machine.Quietness()
    try:
        row = step(peer, asked)
    except Exception as error:  # one system's failure is its own result
        row = {f"{name}_error": repr(error)[:ERROR_LENGTH]}
    return row | {f"{name}_{what}": value for what, value in quietness.over().items()}


def rehearse_failures(record: Record, peers: list[Peer], asked: Options) -> None:
    """The failure tests wait rather than compute: all systems at once, each in a database of its own."""
    peers = [peer for peer in peers if peer.takes_part("crash")]
    if "crash" in asked.phases:
        pairs = [(peer, profile) for profile in ("default", "recovery") for peer in peers]
        for peer in peers:
            record.data["crash"][peer.name] = {}
        with ThreadPoolExecutor(len(pairs)) as pool:
            list(pool.map(lambda pair: _crash(record, asked, *pair), pairs))
    for phase, step in (("zombie", failures.zombie), ("zombie_mid", failures.zombie_mid)):
        if phase in asked.phases:
            with ThreadPoolExecutor(len(peers)) as pool:
                list(pool.map(partial(_zombie, record, asked, phase, step), peers))


def _crash(record: Record, asked: Options, peer: Peer, profile: str) -> None:
    try:
        row = failures.crash(peer, asked, profile)
    except Exception as error:
        row = {"error": repr(error)[:ERROR_LENGTH]}
    record.data["crash"][peer.name][profile] = row
    record.note(f"crash {profile}", peer, row)


def _zombie(record: Record, asked: Options, phase: str, step: Phase, peer: Peer) -> None:
    try:
        row = step(peer, asked)
    except Exception as error:
        row = {"error": repr(error)[:ERROR_LENGTH]}
    record.data[phase][peer.name] = row
    record.note(phase, peer, row)


def main() -> None:
    asked = options.read()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to stop"))  # and the services with it
    with services():
        peers, absent = find_peers(asked)
        record = Record(asked, peers, absent)
        measure(record, peers, asked)
        rehearse_failures(record, peers, asked)
        record.save()


if __name__ == "__main__":
    main()
