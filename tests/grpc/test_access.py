"""Case S2: every call without a key, with one that opens nothing, without the scope, for another queue."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import grpc
import pytest

from faultline.lab.conformance.scripted_worker import ServerUnderTest, done, proof
from faultline.lab.conformance.status_details import problem_in
from faultline.lab.conformance.verdict import Broken
from faultline.lease import Lease
from faultline.rpc.v1 import client_pb2, worker_pb2
from faultline.server.auth import Caller
from faultline.server.grpc.sessions.queue_scope import QueueScope
from faultline.store import calls
from faultline.store.pool import AsyncStore
from tests.support import PROXIES_SET, new_job

Code = grpc.StatusCode

ASK = worker_pb2.Ask(id=1, room=1, queues=["default"])
PROOF = worker_pb2.Proof(job_id=1, token=1, claim=bytes(16))
RESULT = worker_pb2.Result(job_id=1, token=1, claim=bytes(16), done=worker_pb2.Done())

REQUESTS = {
    "Workers.Start": (worker_pb2.Hello(protocol=1, queues=["default"], slots=1), "work"),
    "Workers.Stop": (worker_pb2.StopRequest(worker=1), "work"),
    "Workers.Lease": (worker_pb2.LeaseRequest(ask=ASK), "work"),
    "Workers.Heartbeat": (worker_pb2.HeartbeatRequest(beat=worker_pb2.Beat(leases=[PROOF])), "work"),
    "Workers.Settle": (worker_pb2.SettleRequest(results=worker_pb2.Results(items=[RESULT])), "work"),
    "Workers.Outcome": (worker_pb2.OutcomeRequest(leases=[PROOF]), "work"),
    "Workers.Refused": (worker_pb2.RefusedRequest(job_id=1, token=1), "work"),
    "Workers.Figures": (worker_pb2.FiguresRequest(granted=[worker_pb2.LeaseName(job_id=1, token=1)]), "work"),
    "Workers.OthersServe": (worker_pb2.OthersServeRequest(queue="default"), "work"),
    "Workers.NewestPlace": (worker_pb2.NewestPlaceRequest(), "work"),
    "Jobs.Submit": (client_pb2.SubmitRequest(job=client_pb2.NewJob(task="t")), "enqueue"),
    "Jobs.SubmitMany": (client_pb2.SubmitManyRequest(jobs=[client_pb2.NewJob(task="t")]), "enqueue"),
    "Jobs.Get": (client_pb2.GetRequest(id=1), "read"),
    "Jobs.Wait": (client_pb2.WaitRequest(id=1), "read"),
    "Jobs.Cancel": (client_pb2.CancelRequest(id=1), "operate"),
}


async def _refused(place: ServerUnderTest, name: str) -> grpc.aio.AioRpcError:
    service, _, method = name.partition(".")
    call = getattr(place.workers if service == "Workers" else place.jobs, method)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await place.ask(call, REQUESTS[name][0])
    return caught.value


async def _session_ends_with(place: ServerUnderTest) -> Code:
    talk = place.stream()
    with suppress(Broken):  # it may have ended before the first word
        await talk.say(hello=place.hello())
    return await talk.ended()


def test_no_call_was_forgotten_here():
    unary = {
        f"{name}.{method.name}"
        for file, name in ((worker_pb2.DESCRIPTOR, "Workers"), (client_pb2.DESCRIPTOR, "Jobs"))
        for method in file.services_by_name[name].methods
    }

    assert unary == {*REQUESTS, "Workers.Session"}


def test_s2_a_key_that_opens_nothing_is_answered_alike_everywhere(served):
    async def test(place):
        good, revoked = await place.key_for("admin"), await place.key_for("admin")
        expired = await place.key_for("admin", expires_at=datetime.now(UTC) + timedelta(seconds=0.3))
        await place.store.run(calls.revoke_key(revoked.split("_")[1]))
        wrong = "flk_" + good.split("_")[1] + "_" + "A" * 43
        await asyncio.sleep(0.4)
        said = set()
        for key in (wrong, revoked, expired, "flk_000000000000_" + "A" * 43, "nonsense"):
            way = place.place(key)
            for name in REQUESTS:
                error = await _refused(way, name)
                problem = problem_in(error)
                said.add((error.code(), problem.code, problem.message))
            assert await _session_ends_with(way) is Code.UNAUTHENTICATED

        assert len(said) == 1
        assert said.pop()[:2] == (Code.UNAUTHENTICATED, "not_authenticated")

    served(test, bad_keys_per_second=1e6)


def test_s2_without_a_key_this_machine_may_read_and_no_more(served):
    async def test(place):
        job_id = await place.store.run(calls.enqueue(new_job()))
        way = place.place(None)
        assert (await way.info(job_id)).state == "queued"
        for name, (_, scope) in REQUESTS.items():
            wanted = Code.NOT_FOUND if scope == "read" else Code.PERMISSION_DENIED
            if name not in ("Jobs.Get", "Jobs.Wait"):
                assert (await _refused(way, name)).code() is wanted, name
        assert await _session_ends_with(way) is Code.PERMISSION_DENIED

    served(test)


def test_s2_behind_a_proxy_no_client_counts_as_on_this_machine(served):
    async def test(place):
        way = place.place(None)
        for name in REQUESTS:
            assert (await _refused(way, name)).code() is Code.UNAUTHENTICATED

    served(test, behind_proxy=True)


@pytest.mark.parametrize("scope", ["work", "enqueue", "read", "operate"])
def test_s2_a_key_without_the_scope_is_refused(served, scope):
    async def test(place):
        others = [other for other in ("work", "enqueue", "read", "operate") if other != scope]
        way = place.place(await place.key_for(*others))
        for name, (_, needed) in REQUESTS.items():
            if needed == scope:
                assert (await _refused(way, name)).code() is Code.PERMISSION_DENIED, name
        if scope == "work":
            assert await _session_ends_with(way) is Code.PERMISSION_DENIED

    served(test)


def test_s2_a_key_of_one_queue_finds_another_queues_jobs_as_if_they_were_not_there(served):
    async def test(place):
        theirs = await place.store.run(calls.enqueue(new_job(queue="theirs")))
        way = place.place(await place.key_for("work", "enqueue", "read", "operate", queues=("ours",)), "ours")
        asked = {
            "Get": lambda id: client_pb2.GetRequest(id=id),
            "Wait": lambda id: client_pb2.WaitRequest(id=id),
            "Cancel": lambda id: client_pb2.CancelRequest(id=id),
        }
        for name, request in asked.items():
            said = []
            for id in (theirs, 10**15):
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await way.ask(getattr(way.jobs, name), request(id))
                said.append((caught.value.code(), problem_in(caught.value).message.replace(str(id), "ID")))
            assert said[0] == said[1]
            assert said[0][0] is Code.NOT_FOUND

    served(test)


def test_s2_a_key_of_one_queue_gets_no_job_of_another(served):
    async def test(place):
        await place.store.run(calls.enqueue(new_job(queue="theirs")))
        key = await place.key_for("work", "enqueue", queues=("ours",))
        way = place.place(key, "theirs")

        assert await _session_ends_with(way) is Code.PERMISSION_DENIED
        for call, request in (
            (way.workers.Lease, worker_pb2.LeaseRequest(ask=worker_pb2.Ask(room=1, queues=["theirs"]))),
            (way.jobs.Submit, client_pb2.SubmitRequest(job=client_pb2.NewJob(task="t", queue="theirs"))),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await way.ask(call, request)
            assert caught.value.code() is Code.PERMISSION_DENIED
        async with place.place(key, "ours").session() as talk:
            await talk.say(ask=worker_pb2.Ask(id=1, room=1, queues=["theirs"]))
            assert await talk.ended() is Code.INVALID_ARGUMENT

    served(test)


def test_s2_a_key_of_one_queue_learns_nothing_of_anothers_leases(served):
    """Even with the right claim, which it cannot have; and no refusal is recorded in its name."""

    async def test(place):
        theirs = await place.store.run(calls.enqueue(new_job(queue="theirs")))
        async with place.place(queue="theirs").session() as owner:
            job = await owner.take()
            way = place.place(await place.key_for("work", queues=("ours",)), "ours")
            async with way.session() as talk:
                assert await talk.beat(proof(job)) == [worker_pb2.PULSE_LOST]
                unknown = worker_pb2.Job(id=10**15, token=1, claim=uuid4().bytes)
                stale = await talk.settle(done(job), done(unknown))
                reasons = {(item.refusal.reason, item.refusal.current_token) for item in stale.rest}
                assert reasons == {(worker_pb2.REASON_GONE, 0)}
            ends = await way.ask(way.workers.Outcome, worker_pb2.OutcomeRequest(leases=[proof(job)]))
            assert list(ends.ends) == [worker_pb2.END_GONE]

            assert (await place.store.run(calls.get(theirs))).state == "running"
            assert not await place.store.run(calls.refusals())
            assert (await owner.settle(done(job))).accepted == 1

    served(test)


def test_s2_a_key_of_one_queue_gets_no_figures_of_anothers_leases(served):
    async def test(place):
        theirs = await place.store.run(calls.enqueue(new_job(queue="theirs")))
        first = _claim("theirs")
        old = (await place.store.run(first))[0]
        await _expire(place.store, theirs)
        new = (await place.store.run(_claim("theirs")))[0]
        await place.store.run(calls.refused(Lease(theirs, old.token, first.args["claim"], 1.0, 0.0)))
        asked = worker_pb2.FiguresRequest(
            granted=[worker_pb2.LeaseName(job_id=theirs, token=new.token)],
            refused=[worker_pb2.LeaseName(job_id=theirs, token=old.token)],
        )
        for queues, figures in ((None, 1), (("theirs",), 1), (("ours",), 0)):
            way = place.place(await place.key_for("work", queues=queues))
            told = await way.ask(way.workers.Figures, asked)
            assert (len(told.recovery_seconds), len(told.zombie_seconds)) == (figures, figures)

    served(test)


def _claim(queue):
    lease = timedelta(seconds=15)
    return calls.claim([queue], 1, lease=lease, claim=uuid4(), worker=None, timeout=timedelta(hours=1))


async def _expire(store, job):
    """Its lease has run out, it was taken back, and it is due again."""
    async with store.connection() as conn:
        await conn.execute(
            "update faultline.active set lease_until = faultline.now() - interval '1 s' where id = %s",
            [job],
        )
        await conn.execute("update faultline.rounds set hold_until = '-infinity', gap_at = '{}'")
    await store.run(calls.reap())
    await store.run(calls.retry_now(job))


def test_s2_a_session_ends_when_its_key_is_revoked(served):
    async def test(place):
        key = await place.key_for("work")
        async with place.place(key).session() as talk:
            await place.store.run(calls.revoke_key(key.split("_")[1]))
            place.server.guard._authenticator._remembered.clear()
            assert await talk.ended() is Code.UNAUTHENTICATED

    served(test, key_check_seconds=0.2)


def test_a_key_in_another_form_is_no_key(served):
    async def test(place):
        way = place.place()
        for shown in ((("authorization", place.key),), way.metadata * 2, (("authorization", "Basic xyz"),)):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await way.jobs.Get(client_pb2.GetRequest(id=1), metadata=shown, timeout=60)
            assert caught.value.code() is Code.UNAUTHENTICATED

    served(test)


def test_a_key_has_only_so_many_sessions(served):
    async def test(place):
        way = place.place()
        async with way.session(), way.session():
            assert await _session_ends_with(way) is Code.RESOURCE_EXHAUSTED
        await asyncio.sleep(0.2)
        async with way.session():
            pass

    served(test, sessions_per_key=2)


def test_a_client_that_guesses_keys_has_to_wait_and_a_good_key_has_not(served):
    async def test(place):
        way, wrong = place.place(), place.place("flk_000000000000_" + "A" * 43)
        await way.ask(way.workers.Outcome, worker_pb2.OutcomeRequest())
        codes = set()
        for number in range(40):
            guess = place.place(f"flk_{number:012x}_" + "A" * 43)
            guess.channel, guess.workers = wrong.channel, wrong.workers
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await guess.ask(wrong.workers.Outcome, worker_pb2.OutcomeRequest())
            codes.add(caught.value.code())
        assert codes == {Code.UNAUTHENTICATED, Code.RESOURCE_EXHAUSTED}
        await way.ask(way.workers.Outcome, worker_pb2.OutcomeRequest())

    served(test)


def test_what_is_remembered_of_jobs_has_a_bound(monkeypatch):
    monkeypatch.setattr("faultline.server.grpc.sessions.queue_scope.KNOWN_MAX", 100)

    class Everything(AsyncStore):
        async def run(self, call, hint=None):
            return dict.fromkeys(call.args["ids"].values, "ours")

    async def name_many():
        rights = QueueScope(Everything(""), Caller("worker", frozenset({"work"}), frozenset({"ours"}), "k"))
        for start in range(0, 1_000, 50):
            await rights.keep([Lease(id, 1, uuid4(), 1.0, 0.0) for id in range(start, start + 50)])
        return len(rights._known)

    assert asyncio.run(name_many()) <= 150


def test_the_leases_of_a_call_are_looked_up_in_one_query(served):
    """With a key for one queue; else a beat for a thousand leases would be a thousand queries."""

    async def test(place):
        way = place.place(await place.key_for("work", queues=("ours",)), "ours")
        for queue in ["ours"] * 20 + ["theirs"] * 5:
            await place.store.run(calls.enqueue(new_job(queue=queue)))
        ask = worker_pb2.LeaseRequest(ask=worker_pb2.Ask(id=1, room=20, queues=["ours"]), lease_ms=60_000)
        jobs = (await way.ask(way.workers.Lease, ask)).jobs
        claim = uuid4()
        theirs = await place.store.run(calls.claim(["theirs"], 5, lease=timedelta(minutes=1), claim=claim))
        foreign = [worker_pb2.Proof(job_id=job.id, token=job.token, claim=claim.bytes) for job in theirs]
        proofs = [*(proof(job) for job in jobs), *foreign]
        names = [worker_pb2.LeaseName(job_id=one.job_id, token=one.token) for one in proofs]
        ran = _recorded(place.store)

        beat = worker_pb2.HeartbeatRequest(beat=worker_pb2.Beat(leases=proofs))
        pulses = list((await way.ask(way.workers.Heartbeat, beat)).answers)
        figures = worker_pb2.FiguresRequest(granted=names, refused=names)
        await way.ask(way.workers.Figures, figures)

        assert pulses == [worker_pb2.PULSE_HELD] * 20 + [worker_pb2.PULSE_LOST] * 5
        asked = [call.name for call in ran if "key" not in call.name]
        assert asked == ["queues_of", "heartbeat", "queues_of", "recoveries", "zombies"]
        own = {job.id for job in jobs}
        assert {*ran[-1].args["ids"].values} == {*ran[-2].args["ids"].values} == own

    served(test)


def _recorded(store):
    """The calls that a store carries from now on."""
    ran, run = [], store.run

    def recorded(call, *more):
        ran.append(call)
        return run(call, *more)

    store.run = recorded
    return ran


def test_a_call_that_was_passed_on_is_not_from_this_machine(served):
    async def test(place):
        job_id = await place.store.run(calls.enqueue(new_job()))
        way = place.place(None)
        assert (await way.info(job_id)).state == "queued"
        asked = client_pb2.GetRequest(id=job_id)
        for header in PROXIES_SET:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await way.jobs.Get(asked, metadata=((header, "203.0.113.9"),), timeout=60)
            assert caught.value.code() is Code.UNAUTHENTICATED, header

    served(test)


def test_s2_a_key_speaks_for_its_own_workers_only(served):
    """Numbers are small and in a row: a key could say goodbye for another, or be refused in its name."""

    async def test(place):
        mine, other = place.place(await place.key_for("work")), place.place(await place.key_for("work"))
        worker = (await mine.ask(mine.workers.Start, mine.hello())).worker
        job_id = await place.place().submit()
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await other.ask(other.workers.Stop, worker_pb2.StopRequest(worker=worker))
        assert refused.value.code() is Code.PERMISSION_DENIED
        assert (await other.ask(other.workers.Start, other.hello(worker=worker))).worker != worker
        assert (await mine.ask(mine.workers.Start, mine.hello(worker=worker))).worker == worker

        ask = worker_pb2.Ask(room=1, queues=["default"])
        (job,) = (await other.ask(other.workers.Lease, worker_pb2.LeaseRequest(worker=worker, ask=ask))).jobs
        beat = worker_pb2.HeartbeatRequest(worker=worker, beat=worker_pb2.Beat(leases=[proof(job)]))
        assert list((await other.ask(other.workers.Heartbeat, beat)).answers) == [worker_pb2.PULSE_HELD]
        assert (job.id, (await place.store.run(calls.get(job_id))).worker) == (job_id, None)
        for items in ([done(job)], [done(job)]):
            with suppress(grpc.aio.AioRpcError):
                results = worker_pb2.Results(items=items)
                await other.ask(
                    other.workers.Settle, worker_pb2.SettleRequest(worker=worker, results=results)
                )
        asked = worker_pb2.RefusedRequest(worker=worker, job_id=job.id, token=job.token, claim=job.claim)
        await other.ask(other.workers.Refused, asked)
        noted = await place.store.run(calls.refusals())
        assert {(one.job_id, one.worker) for one in noted} == {(job_id, None)}

        (standing,) = [one for one in await place.store.run(calls.list_workers()) if one.id == worker]
        assert standing.stopped_at is None
        await mine.ask(mine.workers.Stop, worker_pb2.StopRequest(worker=worker))

    served(test)


def test_without_being_told_to_trust_this_machine_every_call_needs_a_key(served):
    async def test(place):
        way = place.place(None)
        for name in REQUESTS:
            assert (await _refused(way, name)).code() is Code.UNAUTHENTICATED

    served(test, trust_loopback=False)


@pytest.mark.parametrize("which", ["Lease", "Wait"])
def test_a_key_that_is_revoked_ends_its_long_poll(served, which):
    async def test(place):
        job_id = await place.store.run(calls.enqueue(new_job(queue="other")))
        key = await place.key_for("work", "read")
        way = place.place(key)
        if which == "Lease":
            ask = worker_pb2.LeaseRequest(ask=worker_pb2.Ask(id=1, room=1, queues=["idle"], wait_ms=29_000))
            polling = asyncio.ensure_future(way.ask(way.workers.Lease, ask, 60))
        else:
            wait = client_pb2.WaitRequest(id=job_id, wait_ms=29_000)
            polling = asyncio.ensure_future(way.ask(way.jobs.Wait, wait, 60))
        await asyncio.sleep(1.0)
        assert not polling.done()
        await place.store.run(calls.revoke_key(key.split("_")[1]))
        async with asyncio.timeout(15):  # five seconds, and time for a busy machine
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await polling
        assert caught.value.code() is Code.UNAUTHENTICATED
        async with asyncio.timeout(15):  # a claim under way ends, and what it took goes back
            while place.server.guard.rate_limiter.in_hand():  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    served(test)


def test_s2_no_refusal_is_recorded_of_a_lease_that_was_never_given(served):
    async def test(place):
        way = place.place()
        job_id = await way.submit()
        for token in (0, 1, 2**40):
            asked = worker_pb2.RefusedRequest(job_id=job_id, token=token)
            await way.ask(way.workers.Refused, asked)
            result = worker_pb2.Result(
                job_id=job_id, token=token, claim=uuid4().bytes, done=worker_pb2.Done()
            )
            with suppress(grpc.aio.AioRpcError):
                results = worker_pb2.Results(items=[result])
                await way.ask(way.workers.Settle, worker_pb2.SettleRequest(results=results))
        assert await place.store.run(calls.refusals()) == []

    served(test)


def test_s2_a_refusal_is_recorded_of_a_lease_by_its_claim_and_not_by_its_token(served):
    """Another work key of the queue learns tokens; it had refusals recorded of a lease that was alive."""

    async def test(place):
        mine, other = place.place(), place.place(await place.key_for("work", queues=("default",)))
        await mine.submit()
        ask = worker_pb2.LeaseRequest(ask=worker_pb2.Ask(room=1, queues=["default"]))
        (job,) = (await mine.ask(mine.workers.Lease, ask)).jobs

        async def forge():
            for claim in (b"", bytes(16), uuid4().bytes):
                asked = worker_pb2.RefusedRequest(job_id=job.id, token=job.token, claim=claim)
                await other.ask(other.workers.Refused, asked)
            for claim in (bytes(16), uuid4().bytes):
                for end in ({"done": worker_pb2.Done()}, {"snoozed": worker_pb2.Snoozed(reason="x")}):
                    result = worker_pb2.Result(job_id=job.id, token=job.token, claim=claim, **end)
                    results = worker_pb2.Results(items=[result])
                    with pytest.raises(grpc.aio.AioRpcError):
                        await other.ask(other.workers.Settle, worker_pb2.SettleRequest(results=results))

        await forge()
        results = worker_pb2.Results(items=[done(job)])
        assert (await mine.ask(mine.workers.Settle, worker_pb2.SettleRequest(results=results))).accepted == 1
        await forge()
        assert await place.store.run(calls.refusals()) == []

        late = worker_pb2.RefusedRequest(job_id=job.id, token=job.token, claim=job.claim)
        assert (await mine.ask(mine.workers.Refused, late)).reason == worker_pb2.REASON_SETTLED
        assert [one.token for one in await place.store.run(calls.refusals())] == [job.token]

    served(test)


def test_a_worker_number_that_is_not_there_is_no_number(served):
    """The row of a worker may be gone, pruned or lost with a failover: it goes on with a new number."""
    unknown = 2**31 - 1

    async def test(place):
        way = place.place()
        hello = worker_pb2.Hello(protocol=1, name="w", queues=["default"], worker=unknown)
        assert 0 < (await way.ask(way.workers.Start, hello)).worker < unknown
        beat = worker_pb2.HeartbeatRequest(beat=worker_pb2.Beat(id=1), worker=unknown)
        assert not (await way.ask(way.workers.Heartbeat, beat)).HasField("trouble")
        lease = worker_pb2.LeaseRequest(ask=worker_pb2.Ask(id=1, room=1, queues=["default"]), worker=unknown)
        assert not (await way.ask(way.workers.Lease, lease)).HasField("trouble")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await way.ask(way.workers.Stop, worker_pb2.StopRequest(worker=unknown))
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED

    served(test)
