"""A server's metrics count the traffic of both its APIs and its outcome."""

import asyncio
from contextlib import suppress

import grpc
import httpx2

from faultline.lab.conformance.scripted_worker import ServerUnderTest
from faultline.metrics.series import MetricSeries
from faultline.rpc.v1 import worker_pb2
from faultline.server.traffic_stats import TrafficStats
from faultline.store.pool import AsyncStore
from tests.grpc.conftest import a_server, make_key
from tests.metrics.conftest import samples


def scraped(dsn, visit, settled=lambda found: True):
    """The samples of a server that was visited over both APIs, once they are as `settled` wants them."""

    async def main():
        store = AsyncStore(dsn)
        key = await make_key(store, "admin")
        await store.close()
        async with a_server(dsn) as server:
            shown = {"authorization": f"Bearer {key}"}
            async with (
                httpx2.AsyncClient(base_url=f"http://{server.http}", headers=shown, timeout=30) as client,
                grpc.aio.insecure_channel(str(server.grpc)) as channel,
            ):
                await visit(client, ServerUnderTest(channel, key, "default"))
                async with asyncio.timeout(60):
                    while not settled(  # noqa: ASYNC110
                        found := samples((await client.get("/metrics")).text)
                    ):
                        await asyncio.sleep(0.1)
                return found

    return asyncio.run(main())


def of(found, name, **labels):
    return found.get((f"faultline_server_{name}", frozenset(labels.items())), 0.0)


def test_requests_refusals_times_bytes_and_connections_of_both_doors_are_counted(database):
    async def visit(client, place):
        for _ in range(3):
            assert (await client.post("/api/v1/jobs", json={"task": "t"})).status_code == 201
        await client.get("/api/v1/jobs/123456789")
        await client.get("/api/v1/jobs/7", headers={"authorization": "Bearer flk_wrong"})
        await client.get("/nowhere/7")
        await place.submit()
        with suppress(grpc.aio.AioRpcError):
            await place.info(123456789)
        with suppress(grpc.aio.AioRpcError):
            await ServerUnderTest(place.channel, "flk_wrong", "default").info(7)
        async with place.session() as talk:
            await talk.say(beat=worker_pb2.Beat(id=1))
            await talk.hear("beaten")

    http, rpc = {"protocol": "http"}, {"protocol": "grpc"}
    # Sockets of gRPC are looked at each second.
    found = scraped(database, visit, settled=lambda found: of(found, "connections", **rpc) >= 1)

    assert of(found, "requests_total", **http, route="POST /jobs", answer="ok") == 3
    assert of(found, "requests_total", **http, route="GET /jobs/{job_id}", answer="refused") == 1
    assert of(found, "requests_total", **http, route="other", answer="refused") == 2
    assert of(found, "requests_total", **rpc, route="Jobs/Submit", answer="ok") == 1
    assert of(found, "requests_total", **rpc, route="Jobs/Get", answer="refused") == 2
    assert of(found, "requests_total", **rpc, route="Workers/Session beat", answer="ok") == 1
    for protocol in (http, rpc):
        assert of(found, "refusals_total", **protocol, reason="not_found") == 1
        assert of(found, "connections", **protocol) >= 1
        assert of(found, "bytes_total", **protocol, direction="received") > 0
        assert of(found, "bytes_total", **protocol, direction="sent") > 0
        assert of(found, "refusals_total", **protocol, reason="not_authenticated") == 1
    assert of(found, "request_seconds_count", **http, route="POST /jobs") == 3
    assert of(found, "request_seconds_count", **rpc, route="Jobs/Submit") == 1
    assert of(found, "in_hand", **http, kind="call") == 1  # the scrape itself
    assert of(found, "in_hand", **rpc, kind="vital") == 0


def test_unknown_paths_are_one_label(database):
    async def visit(client, place):
        for number in range(50):
            await client.get(f"/nowhere/{number}")
            await client.get(f"/api/v1/jobs/{1000 + number}")

    found = scraped(database, visit)

    routes = {dict(labels)["route"] for name, labels in found if name == "faultline_server_requests_total"}
    assert routes == {"other", "GET /jobs/{job_id}"}


def test_without_a_counter_nothing_is_gathered():
    door = TrafficStats("http")

    with door.serving("/x") as served:
        served.refuse(500, "unforeseen")
    door.refused("overloaded")

    assert not door._requests
    assert not door._refused
    assert MetricSeries().snapshot() == {}
