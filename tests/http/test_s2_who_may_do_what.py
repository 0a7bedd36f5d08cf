"""S2, S12: each route asks who you are before it tells you anything; a key belongs in a header."""

import asyncio
import inspect
import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from faultline.errors import ConfigError
from faultline.server.auth import Authenticator, mint
from faultline.server.auth.api_keys import id_of
from faultline.server.auth.wrong_keys import WrongKeys
from faultline.server.config import ServerConfig
from faultline.server.limits import Limits
from faultline.store import calls
from tests.http.serving import code_of, serving
from tests.support import PROXIES_SET, enqueue

OPEN = {"/healthz", "/readyz", "/health"}


@pytest.fixture(scope="module")
def proxied(service, admin):
    """The same database behind a proxy: no caller is on this machine there, so every caller needs a key.

    The tests share it, and one of them shows wrong keys: they must not slow the others down.
    """
    with serving(service.dsn, Limits(bad_keys_per_second=1_000), behind_proxy=True, drills=True) as running:
        yield running


def every_route(client):
    """Each method of each path that the OpenAPI document knows, with its blanks filled in."""
    document = client.get("/api/v1/openapi.json").json()
    for path, operations in document["paths"].items():
        filled = re.sub(r"\{job_id\}", "1", path)
        filled = re.sub(r"\{\w+\}", "some", filled)
        for method in operations:
            yield method.upper(), filled


def test_s2_every_route_but_health_refuses_a_client_without_a_key(admin, proxied):
    anonymous = proxied.client()
    asked = 0
    for method, path in every_route(admin):
        if path in OPEN:
            continue
        answer = anonymous.request(method, path, headers={"content-type": "application/json"})
        asked += 1

        assert (answer.status_code, code_of(answer)) == (401, "not_authenticated"), (method, path)
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert asked >= 25


def test_s2_expired_revoked_wrong_and_malformed_keys_get_one_and_the_same_answer(
    proxied, keys_that_open_nothing
):
    answers = [proxied.client(text).get("/api/v1/jobs") for text in keys_that_open_nothing]

    bodies = [{**answer.json(), "request_id": ""} for answer in answers]
    assert {answer.status_code for answer in answers} == {401}
    assert all(body == bodies[0] for body in bodies)
    assert "wrong, expired or revoked" in bodies[0]["what_to_do"]  # a key was sent: none is asked for


@pytest.fixture
def keys_that_open_nothing(service, store, db):
    """Keys that open nothing, each for another reason."""
    expired = service.key("read", expires_at=datetime.now(UTC) + timedelta(days=1))
    db.execute(
        "update faultline.api_keys set expires_at = now() - interval '1 day' where id = %s", [id_of(expired)]
    )
    revoked = service.key("read", name="revoked")
    store.run(calls.revoke_key(id_of(revoked)))
    good = service.key("read")
    return [
        expired,
        revoked,
        good[:-1] + ("A" if good[-1] != "A" else "B"),
        "flk_000000000000_" + "A" * 43,
        "nonsense",
    ]


def test_s2_a_key_without_the_scope_is_refused_before_anything_is_looked_up(admin, proxied, store):
    """So that the answer is the same for a job that is there and for one that is not."""
    there = enqueue(store)
    only_enqueue, only_read = proxied.client(proxied.key("enqueue")), proxied.client(proxied.key("read"))

    for method, path in every_route(admin):
        if path in OPEN or path.endswith("openapi.json"):
            continue
        client = only_enqueue if method == "GET" else only_read
        codes = set()
        for job in (there, 2**40):
            answer = client.request(
                method, path.replace("/jobs/1", f"/jobs/{job}"), headers={"content-type": "application/json"},
                content=b"{}" if method != "GET" else None,
            )  # fmt: skip
            codes.add((answer.status_code, code_of(answer)))
        assert codes == {(403, "not_allowed")}, (method, path)


def test_s2_a_job_of_another_queue_is_not_there(admin, proxied, store):
    """A key for one queue sees no difference between another queue's job and no job at all."""
    elsewhere = enqueue(store, queue="secret")
    client = proxied.client(proxied.key("read", "operate", queues=["mine"]))

    for path in ("", "/wait", "/ledger", "/timeline", "/refusals"):
        there, nowhere = (client.get(f"/api/v1/jobs/{job}{path}") for job in (elsewhere, elsewhere + 10**9))
        assert there.status_code == nowhere.status_code == 404
        assert _said(there, elsewhere) == _said(nowhere, elsewhere + 10**9)
    for verb in ("cancel", "retry", "replay"):
        answer = client.post(f"/api/v1/jobs/{elsewhere}/{verb}", json={})
        assert (answer.status_code, code_of(answer)) == (404, "not_found")


def _said(answer, job_id):
    return {**answer.json(), "request_id": "", "detail": answer.json()["detail"].replace(str(job_id), "ID")}


def test_s2_a_key_for_one_queue_sees_and_fills_only_that_one(proxied, store):
    mine, other = enqueue(store, queue="mine"), enqueue(store, queue="other")
    client = proxied.client(proxied.key("read", "enqueue", "operate", queues=["mine"]))

    listed = {job["id"] for job in client.get("/api/v1/jobs").json()["jobs"]}
    assert mine in listed
    assert other not in listed
    assert client.get("/api/v1/jobs", params={"queue": "other"}).status_code == 403
    assert {queue["queue"] for queue in client.get("/api/v1/queues").json()} == {"mine"}
    assert client.post("/api/v1/jobs", json={"task": "t", "queue": "other"}).status_code == 403
    assert client.post("/api/v1/jobs", json={"task": "t", "queue": "mine"}).status_code == 201
    batch = {"jobs": [{"task": "t", "queue": "mine"}, {"task": "t", "queue": "other"}]}
    assert client.post("/api/v1/jobs/batch", json=batch).status_code == 403
    assert client.post("/api/v1/queues/other/pause", json={}).status_code == 403
    preview = client.post("/api/v1/jobs/bulk/preview", json={"act": "cancel"}).json()
    assert preview["count"] == store.run(calls.count_jobs(["queued", "running"], ["mine"]))
    for everything in ("/api/v1/ledger", "/api/v1/refusals", "/api/v1/acts"):
        assert code_of(client.get(everything)) == "queue_needed"


def test_without_a_key_this_machine_may_look_and_touch_nothing(service, submit):
    anonymous = service.client()
    job_id = submit()

    assert anonymous.get(f"/api/v1/jobs/{job_id}").status_code == 200
    assert anonymous.post("/api/v1/jobs", json={"task": "t"}).status_code == 403
    assert anonymous.post(f"/api/v1/jobs/{job_id}/cancel", json={}).status_code == 403


def test_a_client_behind_a_proxy_is_not_on_this_machine(service):
    """A proxy on this machine that the settings do not name would otherwise lend its address to the world."""
    for header in PROXIES_SET:
        answer = service.client(**{header: "127.0.0.1"}).get("/api/v1/jobs")

        assert answer.status_code == 401, header


def test_s12_a_key_in_the_url_is_refused_even_if_it_is_good(service):
    key = service.key("admin")
    client = service.client(key)

    for url in (
        f"/api/v1/jobs?key={key}",
        "/api/v1/jobs?api_key=x",
        "/api/v1/jobs?access_token=x",
        f"/api/v1/{key}",
    ):
        answer = client.get(url)

        assert (answer.status_code, code_of(answer)) == (400, "key_in_url")
        assert key not in answer.text


def test_s12_wrong_keys_are_slowed_down_and_good_ones_from_the_same_address_are_not(admin, database):
    with serving(database, behind_proxy=True) as own:
        guessing = own.client("flk_000000000000_" + "A" * 43)
        neighbour = own.client(own.key("read"))
        assert neighbour.get("/api/v1/jobs").status_code == 200
        began = time.monotonic()
        codes = [guessing.get("/api/v1/jobs").status_code for _ in range(30)]

        assert codes[0] == 401
        assert codes.count(429) >= 3
        assert time.monotonic() - began > 3.0  # each refusal past the rate comes a second later
        assert neighbour.get("/api/v1/jobs").status_code == 200


def test_a_good_key_that_was_never_seen_is_let_in_beside_a_crowd_of_wrong_ones(admin, database, caplog):
    """They share the address of a proxy; the key is looked at first, and only failures are slowed down."""
    with serving(database, behind_proxy=True) as own, ThreadPoolExecutor(20) as pool:
        wrong = [own.client(mint().text) for _ in range(20)]
        codes = list(pool.map(lambda client: client.get("/api/v1/jobs").status_code, wrong))
        codes += list(pool.map(lambda client: client.get("/api/v1/jobs").status_code, wrong))
        guessing = [pool.submit(client.get, "/api/v1/jobs") for client in wrong]

        fresh = own.client(own.key("read")).get("/api/v1/jobs")

        codes += [answer.result().status_code for answer in guessing]

    assert fresh.status_code == 200
    assert set(codes) == {401, 429}
    lines = [line for line in caplog.messages if "an API key that opens nothing was refused" in line]
    assert 1 <= len(lines) <= 3
    assert "key id" in lines[0]
    assert not any(client.headers["authorization"].split("_", 2)[2] in caplog.text for client in wrong)


def test_a_wrong_key_of_a_client_that_hung_up_is_reported_without_an_address(caplog):
    """A connection that was reset has none any more."""
    asyncio.run(WrongKeys(5.0).are_too_many("HTTP", "", "flk_000000000000_" + "A" * 43))

    assert "was refused, from an address that is gone (key id 000000000000)" in caplog.text


def test_a_key_that_is_revoked_opens_nothing_after_five_seconds(monkeypatch, service, store):
    monkeypatch.setattr("faultline.server.auth.authenticator.CACHE_SECONDS_MAX", 0.0)
    key = service.key("read", name="short")
    client = service.client(key)
    assert client.get("/api/v1/jobs").status_code == 200

    store.run(calls.revoke_key(id_of(key)))

    assert client.get("/api/v1/jobs").status_code == 401


def test_without_being_told_to_trust_this_machine_every_request_needs_a_key(database):
    """A reverse proxy on this machine that sets no header would publish every payload."""
    with serving(database, trust_loopback=False) as own:
        key, anonymous = own.key("read", "enqueue"), own.client()
        job = own.client(key).post("/api/v1/jobs", json={"task": "t", "args": {"card": "4111"}}).json()["id"]

        for path in ("/api/v1/jobs", f"/api/v1/jobs/{job}", "/api/v1/stats", "/metrics", "/api/v1/events"):
            answer = anonymous.get(path)

            assert answer.status_code == 401, path
            assert "4111" not in answer.text
        assert own.client(key).get(f"/api/v1/jobs/{job}").json()["args"] == {"card": "4111"}


def test_a_server_does_not_trust_this_machine_unless_told_so():
    assert not ServerConfig().trust_loopback
    assert not inspect.signature(Authenticator).parameters["trust_loopback"].default
    with pytest.raises(ConfigError, match="proxy"):
        ServerConfig(trust_loopback=True, behind_proxy=True)


def test_a_key_that_is_revoked_ends_its_long_poll(service, store, submit):
    job, key = submit(), service.key("read", name="short")
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(service.client(key).get, f"/api/v1/jobs/{job}/wait?seconds=19")
        time.sleep(1.0)
        store.run(calls.revoke_key(id_of(key)))

        assert waiting.result().status_code == 401
    assert time.monotonic() - began < 15  # five seconds, and time for a busy machine
