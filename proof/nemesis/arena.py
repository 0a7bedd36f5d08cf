"""The arena: crew, producers, sink and their lines to one server, for as long as a phase lasts."""

import asyncio
import contextlib
import json
import os
import random
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from faultline.lab.drills.processes.worker_processes import ProcessKeeper
from proof.nemesis import mutants
from proof.nemesis.crew import AGAIN_SECONDS, CREW, RUN, Orders, Post
from proof.nemesis.proxy import Link
from proof.nemesis.sink import SINK, Sink

PRODUCERS: Final = (sys.executable, "-P", "-m", "proof.nemesis.producers")
LEAVE_SECONDS_MAX: Final = 20.0
ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True)
class Wanted:
    """What one run is: its seed, its length, and what is broken in it on purpose."""

    seed: int
    minutes: float
    rate: float = 40.0
    mutant: str = ""


@dataclass(eq=False)
class Arena:
    """Everything that runs against one server, and the notes of its producers."""

    wanted: Wanted
    run: str
    folder: Path
    target: Callable[[], str]
    keeper: ProcessKeeper
    sink: Sink
    posts: dict[str, Post] = field(default_factory=dict)
    links: dict[str, Link] = field(default_factory=dict)
    _tasks: list["asyncio.Task[None]"] = field(default_factory=list)
    _dice: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._dice = random.Random(f"pauses-{self.wanted.seed}")

    @property
    def notes_file(self) -> Path:
        return self.folder / "producers.jsonl"

    @property
    def producers(self) -> Post:
        return self.posts["producers"]

    @property
    def crew(self) -> list[Post]:
        """The workers' posts, in the order in which they were manned; not the producers."""
        return [post for name, post in self.posts.items() if name != "producers"]

    async def man(self, name: str, orders: Orders, command: tuple[str, ...] = ()) -> Post:
        """Open a post with a line of its own, and keep it manned."""
        link = self.links.setdefault(name, Link(name, self.target))
        await link.start()
        environment = {
            RUN: self.run, SINK: str(self.sink.path), mutants.MUTANT: self.wanted.mutant,
            "NEMESIS_NOTES": str(self.notes_file), "NEMESIS_SEED": str(self.wanted.seed),
            "NEMESIS_RATE": str(self.wanted.rate),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
        }  # fmt: skip
        post = Post(name, orders, link, self.folder / f"{name}.log", self.keeper, environment)
        if command:
            post.command = command
        self.posts[name] = post
        post.start()
        pause = self._dice.uniform(*AGAIN_SECONDS)
        self._tasks.append(asyncio.create_task(post.keep_manned(pause)))
        return post

    def read_notes(self) -> list[dict[str, Any]]:
        """The producers' notes; a last line that a kill cut short is not a note."""
        if not self.notes_file.exists():
            return []
        lines = self.notes_file.read_bytes().split(b"\n")[:-1]
        return [json.loads(line) for line in lines]

    async def stop_producers(self) -> None:
        await self.producers.leave(LEAVE_SECONDS_MAX)

    async def dismiss(self, name: str) -> None:
        """Let one post go for good, with its line."""
        await self.posts.pop(name).leave(LEAVE_SECONDS_MAX)
        await self.links.pop(name).stop()

    async def stop_crew(self) -> dict[str, int | None]:
        """SIGTERM to every worker; how each of them left."""
        names = [post.name for post in self.crew]
        codes = await asyncio.gather(*(post.leave(LEAVE_SECONDS_MAX) for post in self.crew))
        return dict(zip(names, codes, strict=True))


@contextlib.asynccontextmanager
async def arena(
    wanted: Wanted, run: str, folder: Path, target: Callable[[], str], crew: dict[str, Orders] | None = None
) -> AsyncIterator[Arena]:
    """Crew and producers at work; none of them is left when the block ends."""
    folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - before anything runs
    keeper = ProcessKeeper()
    sink = Sink(folder / "sink")
    made = Arena(wanted, run, folder, target, keeper, sink)
    try:
        async with sink.listening():
            for name, orders in (crew or CREW).items():
                await made.man(name, orders)
            await made.man("producers", Orders(), PRODUCERS)
            yield made
    finally:
        for task in made._tasks:
            task.cancel()
        for post in made.posts.values():
            await post.leave(0.0)
        for link in made.links.values():
            await link.stop()
        await asyncio.to_thread(keeper.close)
