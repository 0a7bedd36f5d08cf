"""A worker's line to a server: the same calls as to the database, carried as messages of the protocol."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from faultline.config import WorkerConfig
from faultline.errors import ConfigError, FaultlineError, LeaseLost
from faultline.remote import outcomes, words
from faultline.remote.exchange import Exchange
from faultline.rpc.v1 import worker_pb2 as rpc
from faultline.store.call import Call, Row
from faultline.store.line import Taker
from faultline.worker.unfit import LEFT_MAX

T = TypeVar("T")

BUSY_PAUSE: Final = 0.05
"""How long to wait before a row that somebody has locked is tried again; the database would have waited."""

Carry = Callable[[Call[Any]], Awaitable[list[Row]]]


class RemoteLine:
    """One call at a time, over the exchange that all lines of a worker share.

    Its answers are the rows that the database would give, and its errors the database's own: so feeder and
    settler need not know who is there.
    """

    def __init__(self, exchange: Exchange, config: WorkerConfig) -> None:
        self._exchange = exchange
        self._config = config
        self._turn = asyncio.Lock()
        self._recorded: dict[tuple[int, int], list[Row]] = {}
        """The last refusal that the server has recorded by itself."""
        self._ways: dict[str, Carry] = {
            "worker_started": self._start,
            "worker_stopped": self._nothing,  # the doors say goodbye as they close
            "claim": self._claim,
            "heartbeat": self._beat,
            "complete_many": self._settle_many,
            "fail_many": self._settle_many,
            "outcome": self._outcome,
            "refused": self._refused,
            # Asked about tasks that nobody knows, to give their jobs up after a day: the server does that.
            "get_outline": self._nothing,
            "history": self._nothing,
            "others_serve": self._others_serve,
            "recoveries": self._recoveries,
            "zombies": self._zombies,
            **dict.fromkeys(outcomes.SINGLES, self._settle),
            "crash": self._crash,
        }

    async def run(self, call: Call[T]) -> T:
        """Carry one call."""
        return call.read(await self.fetch(call))

    async def run_in_line(self, call: Call[T]) -> T:
        """The same: a server has the next when it has answered the last."""
        return await self.run(call)

    async def fetch(self, call: Call[Any], taker: Taker | None = None) -> list[Row]:
        """Carry one call; the rows that the database would have given."""
        async with self._turn:
            rows = await self._ways[call.name](call)
            if taker is not None:
                taker.take(rows)
            return rows

    def early(self, call: Call[Any]) -> None:
        """Jobs are pushed to us, so there is nothing to be early with."""

    async def close(self) -> None:
        """The exchange is closed by whoever made it."""

    async def _nothing(self, call: Call[Any]) -> list[Row]:
        return []

    async def _start(self, call: Call[Any]) -> list[Row]:
        args = call.args
        hello = rpc.Hello(
            protocol=words.PROTOCOL, name=args["name"], host=args["host"], pid=args["pid"],
            version=args["version"], queues=args["queues"].values, slots=args["jobs_max"],
            lease_ms=words.milliseconds(self._config.lease_for),
            timeout_ms=words.milliseconds(self._config.timeout), wakes=True,
        )  # fmt: skip
        return [((await self._exchange.hello(hello)).worker,)]

    async def _claim(self, call: Call[Any]) -> list[Row]:
        asked = rpc.FromWorker(ask=words.ask(call.args, self._exchange.limits))
        return words.claimed(await self._exchange.ask(asked), self._config.lease_for)

    async def _beat(self, call: Call[Any]) -> list[Row]:
        proofs = words.proofs(call.args)
        said = rpc.FromWorker(beat=rpc.Beat(leases=proofs))
        return words.beaten(proofs, await self._exchange.ask(said))

    async def _settle_many(self, call: Call[Any]) -> list[Row]:
        """A few parcels at once: while the database records one, the server reads the next."""
        limits = self._exchange.limits
        parcels = list(outcomes.parcels(outcomes.many(call.args), limits))
        turns = asyncio.Semaphore(outcomes.at_once(limits))

        async def settle(parcel: rpc.FromWorker) -> list[Row]:
            async with turns:
                return outcomes.answers(parcel.results.items, await self._exchange.ask(parcel))

        answered = await asyncio.gather(*map(settle, parcels), return_exceptions=True)
        return outcomes.together(parcels, answered)

    async def _settle(self, call: Call[Any]) -> list[Row]:
        said = outcomes.one(call.name, call.args)
        while True:
            try:
                return outcomes.answer(await self._exchange.ask(said))
            except outcomes.RowBusy:
                await asyncio.sleep(BUSY_PAUSE)
            except LeaseLost as lost:
                self._recorded = {(lost.job_id, lost.token): [(lost.reason, lost.current_token)]}
                raise

    async def _crash(self, call: Call[Any]) -> list[Row]:
        """The answer to a settling does not say whether the job died of it: the ledger does."""
        recorded = await self._settle(call)
        try:
            return await self._outcome(call)
        except FaultlineError:
            return recorded  # it is recorded all the same; only the log knows less

    async def _outcome(self, call: Call[Any]) -> list[Row]:
        args = call.args
        proof = rpc.Proof(job_id=args["job_id"], token=args["token"], claim=args["claim"].bytes)
        response = await self._exchange.call("Outcome", rpc.OutcomeRequest(leases=[proof]))
        return [(words.ENDS.get(response.ends[0], "gone"),)]

    async def _others_serve(self, call: Call[Any]) -> list[Row]:
        """No, where the server takes fewer exceptions than a worker makes: their jobs are put off instead."""
        if self._exchange.limits.except_tasks_max < LEFT_MAX:
            return []
        request = rpc.OthersServeRequest(worker=call.args["worker"], queue=call.args["queue"])
        try:
            return [((await self._exchange.call("OthersServe", request)).others,)]
        except ConfigError:  # another replica took over meanwhile, of an earlier version
            return []

    async def _recoveries(self, call: Call[Any]) -> list[Row]:
        request = rpc.FiguresRequest(granted=words.names(call.args))
        return [(seconds,) for seconds in (await self._exchange.call("Figures", request)).recovery_seconds]

    async def _zombies(self, call: Call[Any]) -> list[Row]:
        request = rpc.FiguresRequest(refused=words.names(call.args))
        return [(seconds,) for seconds in (await self._exchange.call("Figures", request)).zombie_seconds]

    async def _refused(self, call: Call[Any]) -> list[Row]:
        """Have a refusal recorded, unless the server did that as it refused."""
        args = call.args
        if recorded := self._recorded.pop((args["job_id"], args["token"]), None):
            return recorded
        request = rpc.RefusedRequest(
            worker=args["worker"], job_id=args["job_id"], token=args["token"], claim=args["claim"].bytes
        )
        return outcomes.refused(await self._exchange.call("Refused", request))
