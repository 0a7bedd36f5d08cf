"""The demo's first part: a few hundred ordinary jobs, done by one worker process while we watch."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from faultline.lab.drills.stage.scene import Scene
from faultline.lab.drills.view.trace import TraceSign
from faultline.lab.drills.workloads import send_receipt
from faultline.store import calls
from faultline.store.pool import Store

JOBS = 300
CREW = "crew"
WITHIN_SECONDS = 60
SAID_EVERY = 100


class DemoProgress:
    """Counts commits as they are heard; a moving bar on a terminal, a line now and then elsewhere."""

    def __init__(self, console: Console, jobs: int) -> None:
        self._console = console
        self._jobs = jobs
        self._done = 0
        self._bar = Progress(
            TextColumn("  receipts"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console,
            disable=not console.is_terminal,
        )  # fmt: skip
        self._task = self._bar.add_task("receipts", total=jobs)

    def __enter__(self) -> "DemoProgress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def heard(self, sign: TraceSign) -> None:
        if sign.what != "committed":
            return
        self._done += 1
        self._bar.advance(self._task)
        if not self._console.is_terminal and self._done % SAID_EVERY == 0:
            self._console.print(f"  {self._done} of {self._jobs} receipts", highlight=False)

    @property
    def all_done(self) -> bool:
        return self._done >= self._jobs


def play(scene: Scene, console: Console, jobs: int) -> None:
    """Enqueue the jobs, start a worker, and wait until each of them has committed."""
    task = send_receipt.using(queue=scene.queue)
    with DemoProgress(console, jobs) as watching:
        scene.trace.listen(watching.heard)
        Store.run_in(scene.conn, calls.enqueue_many([task.new(order) for order in range(jobs)]))
        crew = scene.worker(CREW, jobs_max=10)
        scene.trace.wait_for(lambda _: watching.all_done, WITHIN_SECONDS, f"{jobs} ordinary jobs are done")
        scene.trace.listen(None)
    scene.stop(crew)
