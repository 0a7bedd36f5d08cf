"""A worker with much to do sends its next claims, and its next batches, before the last ones are answered."""

import asyncio
import contextlib
import gc
import time
from collections.abc import Iterator
from typing import Any, cast
from uuid import uuid4

import psycopg
import pytest
import uvloop

from faultline.config import WorkerConfig
from faultline.errors import FaultlineError, ServerUnavailable
from faultline.job import Job
from faultline.store import calls
from faultline.store.session import DbSession, PipelinedCall
from faultline.worker.backend import ClaimParams
from faultline.worker.claiming.claim_request import ClaimReceiver, ClaimRequest
from faultline.worker.claiming.lane_cursors import LaneCursors
from faultline.worker.state import WorkerState
from tests.support import LEASE, StillTime, enqueue, new_job, still_time
from tests.support_proxy import Proxy
from tests.worker.harness import claimer_of, drain, quick

SOON = 10.0


@pytest.fixture
def state() -> Iterator[WorkerState]:
    state = WorkerState(WorkerConfig(jobs_max=10, buffer_max=2000))
    yield state
    state.lease_table.close()


@pytest.fixture
def clock(state: WorkerState, monkeypatch: pytest.MonkeyPatch) -> StillTime:
    clock = still_time(monkeypatch)
    state._measured, state._idle_since = (clock.now, 0), None
    return clock


LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(
        "faultline.store.driver.exchange.LOOK_AGAIN_SECONDS", 60.0
    )  # a second look saves no call
    return request.param


def claim(room: int = 1, queue: str = "default") -> Any:
    return calls.claim([queue], room, lease=LEASE, claim=uuid4())


def nobody_is_there() -> Any:
    return claim(queue="nobody_is_here")


def params(room: int) -> ClaimParams:
    return ClaimParams(uuid4(), ["default"], room)


class Received:
    """Keeps what a claim delivers."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def receive(self, request: ClaimRequest, rows: list[Any]) -> None:
        self.rows += rows


def request(room: int, receiver: ClaimReceiver) -> ClaimRequest:
    """A claim over a connection that never answers."""
    return ClaimRequest(cast(Any, Carries()), params(room), LaneCursors(), receiver)


class Taken:
    """Keeps what came, in its order; with links, another call is sent from there."""

    def __init__(self, line: DbSession, links: int = 0) -> None:
        self.line = line
        self.links = links
        self.sent: list[PipelinedCall] = []
        self.came: list[int] = []

    def send(self, call: Any = None) -> PipelinedCall:
        early = self.line.early(call or claim())
        assert early is not None
        early.send(self)
        assert early.was_sent
        self.sent.append(early)
        return early

    def take(self, rows: list[Any]) -> None:
        self.came += [row[0] for row in rows]
        if self.links:
            self.links -= 1
            self.send()


@contextlib.asynccontextmanager
async def connected(database: str) -> Any:
    line = DbSession(database)
    await line.run(nobody_is_there())
    try:
        async with asyncio.timeout(SOON):
            yield line
    finally:
        await line.close()


@contextlib.contextmanager
def locked(database: str) -> Iterator[None]:
    """A claim has to wait."""
    with psycopg.connect(database) as other:
        other.execute("lock table faultline.active in access exclusive mode")
        yield


def test_calls_are_sent_before_the_first_is_answered_and_answered_in_their_order(database, store, run):
    jobs = [enqueue(store, task="work") for _ in range(4)]

    async def ask() -> None:
        async with connected(database) as line:
            taken = Taken(line)
            with locked(database):
                early = [taken.send() for _ in range(3)]
                await asyncio.sleep(0.1)
                assert taken.came == []
            replies = [await each.reply() for each in early]
            assert [rows[0][0] for rows in replies] == taken.came == jobs[:3]
            assert [row[0] for row in await line.run(claim())] == jobs[3:]  # the line goes on as any other
            assert early[0].conn._talks == ()  # no reply is kept

    run(ask())


def test_an_ordinary_call_behind_them_waits_for_the_last(database, store, run):
    jobs = [enqueue(store, task="work") for _ in range(3)]

    async def ask() -> None:
        async with connected(database) as line:
            taken = Taken(line)
            first = taken.send()
            while not taken.came:  # noqa: ASYNC110 - it is told, not awaited
                await asyncio.sleep(0.001)
            with locked(database):
                second = taken.send()
                await first.reply()
                other = asyncio.create_task(line.run(nobody_is_there()))
                await asyncio.sleep(0.1)
                third = line.early(claim())
                third.send(taken)
                assert not third.was_sent  # before the other had its turn
            assert await other == []
            assert taken.came == jobs[:2]
            await second.reply()
            await taken.send().reply()
            assert taken.came == jobs

    run(ask())


def test_wake_ups_are_heard_behind_them(database, store, run):
    enqueue(store, task="work")
    enqueue(store, task="work")

    async def ask() -> None:
        heard = asyncio.Queue[str | None]()
        async with connected(database) as line:
            line.tell(heard.put_nowait)
            await line.run(nobody_is_there())
            taken = Taken(line, links=1)
            await line.fetch(claim(), taken)
            await taken.sent[0].reply()
            await asyncio.to_thread(store.run, calls.wake("default"))
            while await heard.get() != "default":
                pass

    run(ask())


def test_what_is_refused_is_no_matter_of_those_behind_it(database, store, run):
    job = enqueue(store, task="work")

    async def ask() -> None:
        async with connected(database) as line:
            taken = Taken(line)
            wrong, right = taken.send(claim(room=0)), taken.send()
            with pytest.raises(FaultlineError):
                await wrong.reply()
            assert [row[0] for row in await right.reply()] == [job]

    run(ask())


def test_no_call_hears_the_reply_to_another(database, store, run):
    """When one is given up its reply is still to come, and the next would take it for its own."""
    enqueue(store, task="work")

    async def ask() -> None:
        taken: list[Any] = []
        async with connected(database) as line:
            spoken = line._conn.prepared_calls
            first, *others = [line._conn.send_ahead(spoken.prepare(claim()), taken.append) for _ in range(3)]
            time.sleep(0.2)  # noqa: ASYNC251 - all are answered before any task had a turn to read
            first.close()
            for other in others:
                with pytest.raises(psycopg.OperationalError):
                    await other.ended
            assert taken == []

    run(ask())


def test_one_that_is_given_up_takes_the_connection_with_it(database, store, run):
    enqueue(store, task="work")

    async def ask() -> None:
        async with connected(database) as line:
            taken = Taken(line)
            with locked(database):
                first, second = taken.send(), taken.send()
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await first.reply()
                with pytest.raises(ServerUnavailable):
                    await second.reply()
            assert taken.came == []
            await line.run(nobody_is_there())  # over another connection

    run(ask())


@LOOPS
def test_a_server_that_goes_away_is_told_to_all_of_them(database, store, db, run):
    """Here by looking again, too: uvloop does not tell of each socket that was reset."""

    async def ask() -> None:
        async with connected(database) as line:
            taken = Taken(line)
            with locked(database):
                early = [taken.send() for _ in range(3)]
                await asyncio.sleep(0.1)
                db.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where datname = current_database() and query ~ 'faultline.claim'"
                    " and pid <> pg_backend_pid()"
                )
                for each in early:
                    with pytest.raises(ServerUnavailable):
                        await each.reply()

    run(ask())


@LOOPS
def test_a_line_that_was_reset_while_idle_is_opened_again_for_the_next_call(database, run):
    async def ask(proxy: Proxy) -> None:
        line = DbSession(proxy.dsn)
        async with asyncio.timeout(SOON):
            await line.run_in_line(nobody_is_there())
            for _ in range(3):
                await asyncio.gather(*(line.run_in_line(nobody_is_there()) for _ in range(2)))
                proxy.reset()
                await asyncio.sleep(0.05)
                told = await asyncio.gather(
                    *(line.run_in_line(nobody_is_there()) for _ in range(3)), return_exceptions=True
                )
                assert isinstance(told[0], ServerUnavailable)
                assert await line.run_in_line(nobody_is_there()) == []
        await line.close()

    with Proxy(database) as proxy:
        run(ask(proxy))


def test_a_line_that_is_closed_leaves_its_number_though_calls_are_under_way(database, store, run):
    """The next connection gets that number, and the loop takes it for the old one: uvloop aborts."""

    async def ask() -> None:
        async with connected(database) as line:
            taken = Taken(line)
            with locked(database):
                early = [taken.send() for _ in range(2)]
                number = early[0].conn.pgconn.socket
                await line.close()
                assert not asyncio.get_running_loop().remove_reader(number)
                for each in early:
                    with pytest.raises(ServerUnavailable):
                        await each.reply()

    run(ask())


def test_a_session_that_was_told_to_forget_is_of_this_moment(database, store, run):
    job = enqueue(store, task="work")

    async def ask() -> None:
        async with connected(database) as line:
            taken = Taken(line)
            for _ in range(2):
                await taken.send(nobody_is_there()).reply()
            assert line._conn is not None
            await line._conn.execute("deallocate all")
            forgotten = [taken.send(nobody_is_there()) for _ in range(2)]
            for each in forgotten:
                with pytest.raises(ServerUnavailable):
                    await each.reply()
            assert [row[0] for row in await taken.send().reply()] == [job]

    run(ask())


def test_batches_are_run_one_behind_the_other(database, store, run):
    jobs = [enqueue(store, task="work") for _ in range(2)]

    async def ask() -> None:
        async with connected(database) as line:
            with locked(database):
                both = [asyncio.create_task(line.run_in_line(claim())) for _ in range(2)]
                await asyncio.sleep(0.1)
                assert not any(each.done() for each in both)
                assert line._conn is not None
                assert line._conn.prepared_calls._in_line == 2
            assert [(await each)[0].id for each in both] == jobs

    run(ask())


def test_a_drain_claims_ahead_and_does_all_in_line(database, store, monkeypatch):
    under_way: list[int] = []
    send = PipelinedCall.send

    def told_of(self: PipelinedCall, taker: Any = None) -> None:
        send(self, taker)
        under_way.append(self.conn.prepared_calls._in_line)

    monkeypatch.setattr(PipelinedCall, "send", told_of)
    done: list[int] = []

    async def work(job: Job) -> None:
        done.append(job.id)

    store.run(calls.enqueue_many([new_job(task="work")] * 6000))
    drain(database, work, config=quick(jobs_max=1))

    assert len(done) == 6000
    assert done == sorted(done)
    assert max(under_way) >= 2


class EarlyClaim:
    was_sent = False

    def send(self, taker: Any = None) -> None:
        self.was_sent = True


class Carries:
    """A backend that sends each claim that is prepared, and is never answered."""

    def prepare_claim(self, params: ClaimParams) -> Any:
        return EarlyClaim()


@pytest.mark.parametrize(
    ("buffer_max", "asked", "rooms"),
    [
        (2000, [], [500, 500]), (1000, [], [500, 500]), (600, [], [500]),
        (2000, [300], [300, 500]), (600, [300], [300, 301]), (600, [400], [400]),
    ],
)  # fmt: skip
def test_claims_under_way_count_for_the_room_that_is_left(monkeypatch, buffer_max, asked, rooms):
    still_time(monkeypatch)  # else the rate is measured anew where the machine takes its time
    state = WorkerState(WorkerConfig(jobs_max=1, buffer_max=buffer_max))
    state._rate = 1e6

    async def ask() -> list[int]:
        claimer = claimer_of(state, Carries())
        for room in asked:  # and not answered yet
            claimer._ahead.append(request(room, claimer))
        claimer._follow()
        claimer._follow()
        return [claim.room for claim in claimer._ahead]

    try:
        assert asyncio.run(ask()) == rooms
    finally:
        state.lease_table.close()


def test_what_a_claim_behind_others_stepped_over_is_claimed_next(monkeypatch):
    """It began where the one before it would have ended, had no urgent jobs come between."""
    still_time(monkeypatch)
    state, begun = WorkerState(WorkerConfig(jobs_max=1, buffer_max=3000)), []
    state._rate = 1e6

    class Told(Carries):
        def prepare_claim(self, params: ClaimParams) -> Any:
            begun.append(list(params.begins.values()))
            return EarlyClaim()

    def rows(lane: int, places: range) -> list[Any]:
        return [
            (place, 1, 1, 5, 0, "work", "default", "{}", *[None] * 5, lane, place, *[None] * 3, 0, None, None)
            for place in places
        ]

    async def ask() -> None:
        claimer = claimer_of(state, Told())
        memory = claimer._cursors[""]
        memory.begins()
        for place in (500, 1000, 1500, 2000):
            memory.took([(*[None] * 13, 1, place)], is_full=True)
        claimer._follow()
        urgent, behind = claimer._ahead
        urgent.take(rows(2, range(500)))
        behind.take(rows(1, range(2501, 3001)))

    try:
        asyncio.run(ask())
        assert begun[:2] == [[2001], [2501]]
        assert begun[-1] == [2001, 500]
    finally:
        state.lease_table.close()


def test_a_claim_that_is_sent_behind_others_knows_that_something_is_coming(state):
    """The lease table does not have those jobs yet: the request has not seen what is given back of them."""

    async def ask() -> ClaimRequest:
        claimer = claimer_of(state, Carries())
        follower = request(5, claimer)
        assert follower.prepare()
        claimer._send(follower, coming=5)
        return follower

    follower = asyncio.run(ask())
    assert follower.was_sent
    assert not follower.had_none


def test_a_claim_that_was_taken_is_not_asked_again_though_its_line_broke():
    """A second request might bring other jobs, which no worker would take."""
    received = Received()
    granted = request(5, received)
    granted.take([(7, *[0] * 6, "{}", *[0] * 11)])

    asyncio.run(granted.ask())

    assert [row[0] for row in received.rows] == [7]
    assert granted.found_jobs


def test_jobs_that_are_coming_count_as_if_they_were_there(state, clock):
    state._rate = 1e6  # as fast as can be: the buffer is what bounds

    assert state.wanted() == 500
    assert state.wanted(coming=1000) == 500
    assert state.wanted(coming=1501) == 0
    state.left = 700
    assert state.wanted(coming=500) == 200
    assert state.wanted(coming=700) == 0


async def rest(state: WorkerState, clock: StillTime, pause: float, polls: int) -> None:
    """Two runners wait for jobs; the claimer looks some times, and then they come."""
    waiting = [asyncio.create_task(state.until_filled()) for _ in range(2)]
    await asyncio.sleep(0)
    for _ in range(polls):
        clock.now += pause / polls
        state.wanted()
    clock.now += 0 if polls else pause
    state.go_on_measuring()
    state.go_on_measuring()  # and more of them, before a runner had its turn
    for each in waiting:
        each.cancel()


def test_the_time_a_worker_waits_for_its_claims_does_not_count_against_its_runners(state, clock):
    for _ in range(20):
        clock.now += 0.01
        state.finished_count += 100
        asyncio.run(rest(state, clock, 0.02, polls=0))
        state.wanted()

    assert state._rate == pytest.approx(10_000)


def test_nor_is_a_worker_taken_for_fast_because_it_was_idle_for_long(state, clock):
    for _ in range(3):
        asyncio.run(rest(state, clock, 600.0, polls=5))
        assert state._measured[0] <= clock.now
        for _ in range(20):
            clock.now += 0.02
            state.finished_count += 1
            assert state.wanted() <= 20

    assert state._rate == pytest.approx(50)


def test_a_claim_is_forgotten_when_its_jobs_are_taken(database, store):
    """Without waiting for the collector: a claim and its call in a ring would keep 500 jobs alive, each."""
    store.run(calls.enqueue_many([new_job(task="work") for _ in range(3000)]))

    async def work() -> None:
        pass

    gc.collect()
    gc.disable()
    try:
        drain(database, work)
        kept = sum(issubclass(type(each), ClaimRequest) for each in gc.get_objects())
    finally:
        gc.enable()

    assert kept <= 2
