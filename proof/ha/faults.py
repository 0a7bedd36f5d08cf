"""Faults of the cluster, step by step; each waits for what it wants to see, and heals what it broke."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import psycopg

from proof.ha import network
from proof.ha.addresses import ADMIN, ETCD, ETCD_IP, NODES, one
from proof.ha.cluster import Cluster
from proof.ha.ground import OnCluster
from proof.ha.load import Load
from proof.ha.processes import TookTooLong, signal_all, wait_for
from proof.ha.programs import ROOT, SOURCES

PROMOTION_SECONDS_MAX: Final = 90.0
SEEN: Final = "select from faultline.jobs where (args ->> 'n')::bigint = %s"


class FaultStep(NamedTuple):
    """What happened, and whether acknowledgements may be lost from here on (async), or no longer."""

    what: str
    mark: str = ""


LOSES, KEEPS, VOID = "loses", "keeps", "void"
Fault = Callable[[OnCluster, Load], Iterator[FaultStep]]


def _another_leads(cluster: Cluster, *nodes: str) -> FaultStep:
    wanted = nodes or ("b", "c")
    found = wait_for(
        lambda: (leader := cluster.leader()) in wanted and leader, PROMOTION_SECONDS_MAX, "another leads"
    )
    return FaultStep(f"{found} leads")


def switchover(ground: OnCluster, load: Load) -> Iterator[FaultStep]:
    (to, *_) = ground.synchronous()
    yield FaultStep(f"switchover a -> {to}")
    ground.cluster.switch_over("a", to)
    yield FaultStep("done")


def kill_primary(ground: OnCluster, load: Load) -> Iterator[FaultStep]:
    yield FaultStep("SIGKILL to Patroni and PostgreSQL of a", LOSES)
    ground.cluster.kill_node("a")
    yield _another_leads(ground.cluster)
    time.sleep(8)
    ground.cluster.start_node("a")
    yield FaultStep("a is started again", KEEPS)


def cut_then_kill(ground: OnCluster, load: Load) -> Iterator[FaultStep]:
    others = [NODES[other] for other in "bc"]
    yield FaultStep("replication of a cut", LOSES)
    network.cut_from("a", *others)
    time.sleep(3)
    ground.cluster.kill_node("a")
    yield FaultStep("a killed")
    yield _another_leads(ground.cluster)
    time.sleep(8)
    # Not before: a kernel still sends what a dead process has left in its sockets.
    network.mend_from("a", *others)
    ground.cluster.start_node("a")
    yield FaultStep("a is started again", KEEPS)


def freeze_for(seconds: float, *, patroni: bool = True) -> Fault:
    def freeze(ground: OnCluster, load: Load) -> Iterator[FaultStep]:
        yield FaultStep(f"a stands still (SIGSTOP), Patroni {'too' if patroni else 'not'}", LOSES)
        ground.cluster.freeze_node("a", patroni=patroni)
        until = time.monotonic() + seconds
        try:
            yield _another_leads(ground.cluster)
        except TookTooLong as error:
            yield FaultStep(str(error))
        time.sleep(max(0.0, until - time.monotonic()))
        ground.cluster.thaw_node("a")
        yield FaultStep("a wakes")
        wait_for(lambda: ground.cluster.leader() in ("b", "c"), PROMOTION_SECONDS_MAX, "a gives up")
        time.sleep(2)
        yield FaultStep("one leads", KEEPS)

    return freeze


def no_etcd_for_a(ground: OnCluster, load: Load) -> Iterator[FaultStep]:
    yield FaultStep("a cannot reach etcd; clients and standbys can reach a")
    network.cut_from("a", ETCD_IP)
    yield _another_leads(ground.cluster)
    time.sleep(10)
    network.mend_from("a", ETCD_IP)
    yield FaultStep("mended")


def cable(ground: OnCluster, load: Load) -> Iterator[FaultStep]:
    yield FaultStep("a's cable is pulled", LOSES)
    network.cut("a")
    yield _another_leads(ground.cluster)
    time.sleep(20)
    network.mend("a")
    yield FaultStep("mended", KEEPS)


def etcd_away(ground: OnCluster, load: Load) -> Iterator[FaultStep]:
    yield FaultStep("all of etcd killed")
    ground.cluster.stop_etcd()
    time.sleep(40)
    away = not ground.cluster.etcd_answers()
    for index in range(len(ETCD)):
        ground.cluster.start_etcd(index)
    yield FaultStep("etcd started again", "" if away else VOID)
    wait_for(ground.cluster.leader, 60, "one leads")
    yield FaultStep("one leads")


def standby_stands_still(ground: OnCluster, load: Load) -> Iterator[FaultStep]:
    (standby, *_) = ground.synchronous()
    yield FaultStep(f"the synchronous standby {standby} stands still")
    ground.cluster.freeze_node(standby)
    time.sleep(30)
    still = ground.cluster.stands_still(standby)
    ground.cluster.thaw_node(standby)
    yield FaultStep("it wakes", "" if still else VOID)


def two_histories(ground: OnCluster, load: Load) -> Iterator[FaultStep]:
    """c sleeps, a dies, b leads; b dies, c wakes and leads: it takes the number of b's timeline again."""
    cluster = ground.cluster
    yield FaultStep("c stands still", LOSES)
    cluster.freeze_node("c")
    time.sleep(6)
    cluster.kill_node("a")
    yield FaultStep("a killed")
    yield _another_leads(cluster, "b")
    time.sleep(15)
    cluster.kill_node("b")
    cluster.thaw_node("c")
    yield FaultStep("b killed, c wakes")
    yield _another_leads(cluster, "c")
    time.sleep(10)
    # pg_rewind cannot tell two histories apart that have one number: the former primary is built again.
    cluster.forget_node("b")
    for node in "ab":
        cluster.start_node(node)
    yield FaultStep("a is started again, b is built again", KEEPS)


def stands_unreplicated(tries: Sequence[str], seen: bool) -> bool:
    """Whether the first try was given up, its row is seen all the same, and the second came to an end."""
    first, second = tries
    return seen and first == "try 1 given up" and second.startswith("try 2 ")


def _is_seen(address: str, n: int) -> bool:
    """Whether that server shows the job to others."""
    try:
        with psycopg.connect(one(address, ADMIN), connect_timeout=5) as conn:
            return bool(conn.execute(SEEN, [n]).rowcount)
    except psycopg.Error:
        return False


def keyed_retry(ground: OnCluster, load: Load) -> Iterator[FaultStep]:
    """Replication is cut; an enqueue with a key is given up and sent again; then the primary dies."""
    others = [NODES[other] for other in "bc"]
    network.cut_from("a", *others)
    yield FaultStep("replication of a cut")
    time.sleep(0.5)
    n = load.first + 99_000_000
    words = [sys.executable, "-u", "-m", "proof.ha.retry", f"retry-{n}", str(n), str(load.acks)]
    env = {**os.environ, "FAULTLINE_DSN": one(NODES["a"]), "HA_NOTES": os.devnull}
    env["PYTHONPATH"] = SOURCES
    # Without a wait: its unfinished first call keeps it from ending while no server answers.
    asking = subprocess.Popen(words, env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert asking.stdout is not None
    tries = [asking.stdout.readline().strip() for _ in range(2)]
    happened = stands_unreplicated(tries, _is_seen(NODES["a"], n))
    yield FaultStep("; ".join(tries), "" if happened else VOID)
    signal_all([asking.pid], signal.SIGKILL)
    asking.wait()
    ground.cluster.kill_node("a")
    yield FaultStep("a killed")
    yield _another_leads(ground.cluster)
    time.sleep(3)
    network.mend_from("a", *others)
    ground.cluster.start_node("a")
    yield FaultStep("a is started again")
