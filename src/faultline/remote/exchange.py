"""The exchange: keeps one session open with whichever replica answers, and opens the next when it breaks."""

import asyncio
from typing import Any, Final

import grpc

from faultline.errors import CannotConnect, InputError, ServerUnavailable
from faultline.remote.address import Address
from faultline.remote.channel import named
from faultline.remote.session import Session
from faultline.rpc.v1.worker_pb2 import FromWorker, Hello, Limits, Notice, OutcomeRequest, Welcome
from faultline.store.lean import Heard
from faultline.store.line import CALL_SECONDS_MAX
from faultline.store.news import of_cancelled

GREET_SECONDS_MAX: Final = 10.0


class Exchange:
    """What all lines of one worker speak over.

    Whoever speaks when nothing is open opens it; when that fails is theirs to decide when to try again.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._first = 0
        """Where to begin looking for a server: with the one that answered last."""
        self._hello: Hello | None = None
        self._session: Session | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._opening = asyncio.Lock()
        self._heard: Heard = lambda queue: None
        self._deaf = True

    async def hello(self, hello: Hello) -> Welcome:
        """Begin, as this worker; later sessions go on under the number that was given here."""
        self._hello = hello
        return (await self._open()).welcome

    async def ask(self, said: FromWorker) -> Any:
        """Say something over the session, and give its answer."""
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
        """What the server takes; before it has said so, nothing is known."""
        return Limits() if self._session is None else self._session.welcome.limits

    def tell(self, heard: Heard) -> None:
        """Have wake-ups told to somebody from now on, and that none can be heard, and that they can again."""
        self._heard = heard
        heard(None if self._deaf else "")

    async def greet(self) -> None:
        """Raise unless one of the servers is there, knows our key, and lets it work."""
        trouble: Exception | None = None
        for target in self._address.targets:
            session = self._new(target)
            try:
                # About no lease at all: whatever it says of that, it is there and lets us in.
                await session.call("Outcome", OutcomeRequest(), GREET_SECONDS_MAX)
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

    async def _open(self) -> Session:
        async with self._opening:
            if self._session is not None and self._session.broken is None:
                return self._session
            if self._session is not None:
                self._let_go(self._session)
            self._session = await self._any()
            return self._session

    async def _any(self) -> Session:
        """The first replica that says welcome; a refusal of one is a refusal of all."""
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
        self._hear(None)
        assert trouble is not None
        raise trouble

    def _new(self, target: str) -> Session:
        """A session that is not open yet, and tells us what it hears once it is."""
        session = Session(
            self._address, target, lambda notice: self._take(session, notice), lambda: self._broke(session)
        )
        return session

    def _hear(self, queue: str | None) -> None:
        self._deaf = queue is None
        self._heard(queue)

    def _broke(self, session: Session) -> None:
        """Nothing can be heard now; the next call opens another session, with the next replica first."""
        if self._session is session:
            self._first += 1
            self._hear(None)

    def _take(self, session: Session, notice: Notice) -> None:
        """News from the server. Of a cancelled job the pacemaker would hear as well, with its next beat."""
        match notice.WhichOneof("news"):
            case "wake":
                self._hear(notice.wake)
            case "cancel":
                self._heard(of_cancelled([notice.cancel.job_id]))
            case "deaf":
                self._hear(None)
            case "drain" if self._session is session:
                self._first += 1  # this one goes away: look at the others first
                self._let_go(session)
                self._hear(None)

    def _let_go(self, session: Session) -> None:
        """No more is said over it; what waits for its answer there may have it."""
        if self._session is session:
            self._session = None
        task = asyncio.create_task(self._see_off(session))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _see_off(self, session: Session) -> None:
        try:
            async with asyncio.timeout(CALL_SECONDS_MAX):
                while session.broken is None and not session.idle:  # noqa: ASYNC110 - many may wait there
                    await asyncio.sleep(0.05)
        except TimeoutError:
            pass
        finally:
            await session.close()

    async def close(self) -> None:
        """Leave, with a word where somebody is there to hear it."""
        session, self._session = self._session, None
        if session is not None:
            await session.close(goodbye=True)
        for task in self._leaving:
            task.cancel()
        await asyncio.gather(*self._leaving, return_exceptions=True)
