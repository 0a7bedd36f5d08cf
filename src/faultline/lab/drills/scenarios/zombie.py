"""The zombie's story, step by step: frozen in its commit, overtaken, awake too late, refused.

And a thief, for which half of a lease is of no use.
"""

import signal
import time
from typing import Final
from uuid import UUID

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from faultline.errors import LeaseLost
from faultline.lab.drills.scenarios.lease_race import FREEZE, A, B, wait_answered
from faultline.lab.drills.stage.scene import AMOUNT, Scene
from faultline.lab.drills.workloads import EFFECT
from faultline.lease import Lease
from faultline.store import calls
from faultline.store.pool import Store

THIEF: Final = "thief"
PACE_SECONDS: Final = 0.7


class ZombieStory:
    """Says what happens, at a pace a person can follow. Nothing else depends on the pauses."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __call__(self, words: str, pause_seconds: float = 0.0) -> None:
        self._console.print(Padding(Text.from_markup(words), (0, 0, 0, 2), expand=False))
        time.sleep(pause_seconds)


def tell(scene: Scene, console: Console) -> None:
    """Play the story with two real worker processes, and say in plain words what happens."""
    say = ZombieStory(console)
    job = scene.enqueue()
    scene.close("B may start")
    scene.close("attempt 2")
    a = scene.worker(A, failpoints=FREEZE)
    b = scene.worker(B, gate="B may start")

    held = scene.trace.wait_for_event(A, "lease_acquired").facts["token"]
    say(f"Worker [cyan]A[/] claims job {job}: move {AMOUNT} coins. Its lease has token {held}.")
    a.wait_stopped()
    scene.open("B may start")
    scene.see(A, "frozen")
    scene.see_lease_of(A)
    say("A has written its rows and is about to commit. [yellow]There we freeze it[/].")
    say("No heartbeat renews the lease, and it runs out ...")

    taken = scene.trace.wait_for_event(B, "at_barrier").facts["token"]
    scene.see(B, "at_work")
    say(
        f"Worker [green]B[/] takes the job over with token {taken}, writes its rows, and works on.",
        PACE_SECONDS,
    )
    scene.see(A, "continued")
    a.send_to_group(signal.SIGCONT)
    say("[yellow]A wakes up[/], knows of nothing, and sends its commit.")
    wait_answered(scene, A)
    say(_answer_to(scene, held), PACE_SECONDS)
    _steal(scene, say)

    scene.open("attempt 2")
    scene.trace.wait_for_event(B, "transaction_left")
    say(_end_of(scene, B))
    scene.stop(a, b)


def _answer_to(scene: Scene, token: int) -> str:
    refusals = Store.run_in(scene.conn, calls.refusals(scene.job))
    for refusal in refusals:
        if refusal.token == token:
            return f"[bold red]Refused[/]: token {token} is old, the job's token is {refusal.current_token}."
    return "[bold red]It went through![/]"


def _end_of(scene: Scene, who: str) -> str:
    wrote = scene.conn.execute(
        "select from effects where job_id = %s and worker = %s", [scene.job, who]
    ).rowcount
    return (
        f"[green]{who}[/] is done and commits." if wrote else f"[bold red]{who} is done, and is refused![/]"
    )


def _steal(scene: Scene, say: ZombieStory) -> None:
    """Try each half of B's lease with the other half of A's: order alone, identity alone."""
    leases = _both_leases(scene)
    if leases is None:
        say("[bold red]And B no longer holds the job.[/]")
        return
    old, new = leases
    say(
        "A lease has two halves: the token says which claim is newer, a random claim id whose it is. Is one "
        "half enough? A [magenta]thief[/], a third program, tries: first B's token, which can be guessed, "
        "with A's claim id."
    )
    refused = _try_to_commit(scene, old._replace(token=new.token), new)
    say(_answer(refused, "the newest number alone does not make it B's lease."), PACE_SECONDS)
    say("Then B's claim id, as if it had leaked, with A's token.")
    refused = _try_to_commit(scene, new._replace(token=old.token), old)
    say(_answer(refused, "an old number opens nothing, from any worker."), PACE_SECONDS)


def _answer(refused: bool, why: str) -> str:
    return f"[bold red]Refused[/]: {why}" if refused else "[bold red]It went through![/]"


def _both_leases(scene: Scene) -> tuple[Lease, Lease] | None:
    """A's and B's leases. No view shows their claim ids: this reads tables, as only the owner may."""
    old = scene.conn.execute(
        "select token, claim from faultline.ledger where job_id = %s", [scene.job]
    ).fetchone()
    new = scene.conn.execute(
        "select token, claim from faultline.active where id = %s", [scene.job]
    ).fetchone()
    if old is None or new is None:
        return None
    return _lease(scene, *old), _lease(scene, *new)


def _lease(scene: Scene, token: int, claim: UUID) -> Lease:
    return Lease(scene.job, token, claim, scene.lease.total_seconds(), 0.0)


def _try_to_commit(scene: Scene, lease: Lease, named: Lease) -> bool:
    """Commit the job's work under this lease, as a worker would; True when it was refused."""
    try:
        with scene.conn.transaction():
            for wrote in (f"debit {AMOUNT}", f"credit {AMOUNT}"):
                scene.conn.execute(EFFECT, [lease.job_id, lease.token, THIEF, wrote])
            Store.run_in(scene.conn, calls.complete(lease, "null"))
    except LeaseLost:
        thief = Store.run_in(scene.conn, calls.worker_started(THIEF, "nowhere", 1, [], 1, "0"))
        # Recorded under the lease of the token it showed: with another lease's claim there is no record.
        Store.run_in(scene.conn, calls.refused(named, thief))
        return True
    return False
