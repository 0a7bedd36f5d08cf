"""ReplicaSession: keeps one session open with one of the replicas, and opens the next when it breaks."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import grpc

from faultline.errors import CannotConnect, InputError, ServerUnavailable
from faultline.remote.channel import named
from faultline.remote.server_address import ServerAddress
from faultline.remote.worker_stream import WorkerStream
from faultline.rpc.v1.worker_pb2 import FromWorker, Hello, Limits, Notice, OutcomeRequest, Welcome
from faultline.store.driver.async_connection import Heard
from faultline.store.driver.notifications import cancelled_message
from faultline.store.session import CALL_SECONDS_MAX

CHECK_SECONDS_MAX: Final = 10.0


class ReplicaSession:
    """The session shared by all connections of one worker.

    The first call without an open session opens one; when that fails, the caller decides on the next try.
    """

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._first = 0
        """The first replica of the next search: the one that answered last."""
        self._hello: Hello | None = None
        self._session: WorkerStream | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._opening = asyncio.Lock()
        self._heard: Heard = lambda queue: None
        self._deaf = True

    async def hello(self, hello: Hello) -> Welcome:
        """Begin, as this worker; later sessions keep the number that was given here."""
        self._hello = hello
        return (await self._open()).welcome

    async def know_tasks(self, tasks: Sequence[str]) -> None:
        """Name the tasks again: Start, under the number that this worker has, and Hello of later sessions."""
        assert self._hello is not None
        del self._hello.tasks[:]
        self._hello.tasks.extend(tasks)
        await self.call("Start", self._hello)

    async def ask(self, said: FromWorker) -> Any:
        """Send a message over the session, and give its answer."""
        session = await self._open()
        try:
            async with asyncio.timeout(CALL_SECONDS_MAX):
                return await session.ask(said)
        except TimeoutError as silence:
            self._let_go(session)
            raise ServerUnavailable(
                f"no answer from {session.target} in {CALL_SECONDS_MAX:.0f} s"
            ) from silence

    async def call(self, method: str, request: Any) -> Any:
        """A call of its own, beside the session."""
        session = await self._open()
        try:
            return await session.call(method, request, CALL_SECONDS_MAX)
        except grpc.RpcError as fault:
            raise named(fault, session.target, sent=True) from fault

    @property
    def limits(self) -> Limits:
        """The limits of the server; unknown before its first Welcome."""
        return Limits() if self._session is None else self._session.welcome.limits

    def tell(self, heard: Heard) -> None:
        """Pass wake-ups to these functions, and the news that none can be heard, and that they can again."""
        self._heard = heard
        heard(None if self._deaf else "")

    async def check_server(self) -> None:
        """Raise unless one of the servers answers, knows our key, and lets it work."""
        trouble: Exception | None = None
        for target in self._address.targets:
            session = self._new(target)
            try:
                # About no lease at all: any answer proves that the server is there and admits us.
                await session.call("Outcome", OutcomeRequest(), CHECK_SECONDS_MAX)
                return
            except grpc.RpcError as fault:
                trouble = named(fault, target, sent=False)
            finally:
                await session.close()
            if isinstance(trouble, InputError):
                return
            if not isinstance(trouble, CannotConnect):
                break
        assert trouble is not None
        raise trouble

    async def _open(self) -> WorkerStream:
        async with self._opening:
            if self._session is not None and self._session.broken is None:
                return self._session
            if self._session is not None:
                self._let_go(self._session)
            self._session = await self._any()
            return self._session

    async def _any(self) -> WorkerStream:
        """The first replica with a Welcome; a refusal of one is a refusal of all."""
        assert self._hello is not None
        trouble: CannotConnect | None = None
        targets = self._address.targets
        for turn in range(len(targets)):
            place = (self._first + turn) % len(targets)
            session = self._new(targets[place])
            try:
                self._hello.worker = (await session.open(self._hello)).worker
            except CannotConnect as away:
                trouble = away
                await session.close()
                continue
            except BaseException:
                await session.close()
                raise
            self._first = place
            return session
        self._pass_on(None)
        assert trouble is not None
        raise trouble

    def _new(self, target: str) -> WorkerStream:
        """A new session, which passes its news to us once it is open."""
        session = WorkerStream(
            self._address, target, lambda notice: self._take(session, notice), lambda: self._broke(session)
        )
        return session

    def _pass_on(self, queue: str | None) -> None:
        self._deaf = queue is None
        self._heard(queue)

    def _broke(self, session: WorkerStream) -> None:
        """Wake-ups are lost now; the next call opens another session, with the next replica first."""
        if self._session is session:
            self._first += 1
            self._pass_on(None)

    def _take(self, session: WorkerStream, notice: Notice) -> None:
        """News from the server. The pacemaker learns of a cancelled job too, with its next beat."""
        match notice.WhichOneof("news"):
            case "wake":
                self._pass_on(notice.wake)
            case "cancel":
                self._heard(cancelled_message([notice.cancel.job_id]))
            case "deaf":
                self._pass_on(None)
            case "drain" if self._session is session:
                self._first += 1  # this replica goes away: try the others first
                self._let_go(session)
                self._pass_on(None)

    def _let_go(self, session: WorkerStream) -> None:
        """Send no more over it; calls that wait there may still get their answers."""
        if self._session is session:
            self._session = None
        task = asyncio.create_task(self._see_off(session))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _see_off(self, session: WorkerStream) -> None:
        try:
            async with asyncio.timeout(CALL_SECONDS_MAX):
                while session.broken is None and not session.idle:  # noqa: ASYNC110 - many may wait there
                    await asyncio.sleep(0.05)
        except TimeoutError:
            pass
        finally:
            await session.close()

    async def close(self) -> None:
        """Leave, with a reason where the stream is still open."""
        session, self._session = self._session, None
        if session is not None:
            await session.close(goodbye=True)
        for task in self._leaving:
            task.cancel()
        await asyncio.gather(*self._leaving, return_exceptions=True)
