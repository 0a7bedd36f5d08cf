"""What a job costs that uses none of the new features: this tree beside another one.

    git worktree add --detach ../base main
    .venv/bin/python benchmarks/unused_cost.py ../base [--pairs 6] [--slices 10]

CPU of the server's process and WAL for a job, each tree in turn with a server of its own, medians of the
pairs. CPU and not time, since other work on the machine changes the latter. WAL without full pages, which
depend on the moment of the last checkpoint.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

BATCH = 250
ARGS = '{"order": 17, "note": "a job as small as most"}'
SETTINGS = {"full_page_writes": "off", "autovacuum": "off"}

VERBS = {
    # How many jobs a call has, and how many calls a slice has.
    "enqueue": (1, 200), "claim and complete, 1": (1, 200), "enqueue_each, 1": (1, 200),
    "claim and fail, 1": (1, 200), "promote": (1, 200), "claim and complete, 10": (10, 20),
    "enqueue_each, 10": (10, 100), "claim and complete, 250": (250, 4), "enqueue_many, 250": (250, 10),
    "claim and complete again, 250": (250, 10),
}  # fmt: skip
"""In this order the jobs that one verb leaves are the next one's."""

LIVES = {
    "a job, one by one": ("enqueue", "claim and complete, 1"),
    "a job by gathering": ("enqueue_each, 10", "claim and complete, 10"),
    "a job in bulk": ("enqueue_many, 250", "claim and complete again, 250"),
}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("base", type=Path)
    asked.add_argument("--pairs", type=int, default=6, help="each a server of both trees")
    asked.add_argument("--slices", type=int, default=10, help="of each verb in a pair: the trees take turns")
    asked.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = asked.parse_args()
    if options.serve:
        serve()
        return
    pairs = []
    for number in range(options.pairs):
        pairs.append(one_pair({"base": options.base, "this": Path(__file__).parents[1]}, options.slices))
        print(f"pair {number + 1} of {options.pairs}", file=sys.stderr, flush=True)
    show(pairs)


Figures = dict[str, dict[str, tuple[float, float]]]
"""For each tree and verb: CPU in microseconds and WAL in bytes for a job."""


def one_pair(trees: dict[str, Path], slices: int) -> Figures:
    """Both trees at once, each with its server; they never work at the same time."""
    served = {name: start(tree) for name, tree in trees.items()}
    try:
        found: dict[str, dict[str, list[list[float]]]] = {name: {} for name in trees}
        for turn in range(slices + 1):
            for verb in VERBS:
                for name in sorted(trees, reverse=turn % 2 == 1):
                    figures = ask(served[name], verb)
                    if turn:  # the first one makes plans and fills caches
                        found[name].setdefault(verb, []).append(figures)
        return {
            name: {
                verb: tuple(map(statistics.median, zip(*each, strict=True))) for verb, each in verbs.items()
            }
            for name, verbs in found.items()
        }
    finally:
        for process in served.values():
            process.stdin.close()
            process.wait(60)


def show(pairs: list[Figures]) -> None:
    heads = f"{'CPU us base':>12} {'this':>8} {'ratio':>7}   {'WAL B base':>10} {'this':>8}"
    print(f"{'medians of pairs':32} {heads}")
    for verb in VERBS:
        line(verb, [{name: figures[verb] for name, figures in pair.items()} for pair in pairs])
    for life, verbs in LIVES.items():
        line(life, [{name: added(figures, verbs) for name, figures in pair.items()} for pair in pairs])


def added(figures: dict[str, tuple[float, float]], verbs: tuple[str, ...]) -> tuple[float, float]:
    """What the verbs of a job's life cost together."""
    return sum(figures[verb][0] for verb in verbs), sum(figures[verb][1] for verb in verbs)


def line(name: str, pairs: list[Any]) -> None:
    ratio = statistics.median(pair["this"][0] / pair["base"][0] for pair in pairs)
    base, this = (
        [statistics.median(pair[tree][part] for pair in pairs) for part in (0, 1)]
        for tree in ("base", "this")
    )
    print(f"{name:32} {base[0]:12.2f} {this[0]:8.2f} {ratio:7.3f}   {base[1]:10.0f} {this[1]:8.0f}")


def start(tree: Path) -> Any:
    """A process with the package of a tree, and a server of its own."""
    return subprocess.Popen(
        [sys.executable, __file__, str(tree), "--serve"], env={**os.environ, "PYTHONPATH": str(tree / "src")},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def ask(process: Any, verb: str) -> list[float]:
    process.stdin.write(verb + "\n")
    process.stdin.flush()
    figures: list[float] = json.loads(process.stdout.readline())
    return figures


def serve() -> None:
    """Measure one slice for each line of the input."""
    import psycopg

    import faultline
    from faultline.embedded import EmbeddedServer
    from faultline.store.migrate import migrate

    assert str(Path(sys.argv[1]).resolve()) in faultline.__file__, faultline.__file__
    memory = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="faultline-cost-", dir=memory))
    try:
        with EmbeddedServer.open(folder / "data", fsync=False, keep=False, settings=SETTINGS) as server:
            server.create_database("cost")
            migrate(server.dsn("cost"))
            with psycopg.connect(server.dsn("cost"), autocommit=True) as conn:
                lives = Lives(conn)
                for asked in sys.stdin:
                    print(json.dumps(lives.cost(asked.rstrip("\n"))), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Lives:
    """Jobs from their enqueue to their end, one by one and in batches."""

    def __init__(self, conn: Any) -> None:
        self.conn = conn
        (self.pid,) = conn.execute("select pg_backend_pid()").fetchone()

    def cost(self, verb: str) -> tuple[float, float]:
        jobs, times = VERBS[verb]
        act = self.act(verb, jobs)
        cpu, wal = self.cpu(), self.wal()
        for _ in range(times):
            act()
        return (self.cpu() - cpu) / times / jobs / 1000, (self.wal() - wal) / times / jobs

    def act(self, verb: str, jobs: int) -> Callable[[], None]:
        match verb.partition(",")[0]:
            case "enqueue":
                return lambda: self.call("select faultline.enqueue('work', %s)", [ARGS])
            case "enqueue_each":
                return lambda: self.each(jobs)
            case "enqueue_many":
                return lambda: self.call("select from faultline.enqueue_many('work', %s)", [[ARGS] * BATCH])
            case "promote":
                return lambda: self.call("select from faultline.promote(1)")
            case "claim and fail":
                return lambda: self.settle(jobs, fail=True)
            case _:
                return lambda: self.settle(jobs)

    def cpu(self) -> int:
        """Nanoseconds of the server's process."""
        return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[0])

    def wal(self) -> int:
        (written,) = self.conn.execute(
            "select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"
        ).fetchone()
        return int(written)

    def call(self, sql: str, args: Any = None) -> None:
        self.conn.execute(sql, args, prepare=True)

    def each(self, jobs: int) -> None:
        kinds = '[{"task": "work", "queue": "default", "max_attempts": 10}]'
        self.call("select * from faultline.enqueue_each(%s, %s, %s)", [kinds, [1] * jobs, [ARGS] * jobs])

    def settle(self, jobs: int, *, fail: bool = False) -> None:
        claim = uuid4()
        rows = self.conn.execute(
            "select id, token from faultline.claim(array['default'], %s, '15 s', %s)",
            [jobs, claim],
            prepare=True,
        ).fetchall()
        ids, tokens = [row[0] for row in rows], [row[1] for row in rows]
        if fail:
            self.call(
                "select from faultline.fail_many(%s, %s, %s, %s, %s::interval[])",
                [ids, tokens, [claim] * jobs, ["no"] * jobs, ["0"] * jobs],
            )
        else:
            self.call("select from faultline.complete_many(%s, %s, %s, null)", [ids, tokens, [claim] * jobs])


if __name__ == "__main__":
    main()
