"""Lists are read in pages: one key cannot hold up the server by a list that another made long."""

import difflib

import pytest

from faultline.server.http.routes import jobs as routes
from faultline.store import calls
from faultline.text import suggest
from tests.http.serving import code_of
from tests.support import claim_one

QUEUES = "/api/v1/queues"


def test_queues_come_a_page_at_a_time(admin, store):
    names = [f"page-{letter}" for letter in "abcde"]
    for name in names:
        store.run(calls.pause(name))

    first = admin.get(QUEUES, params={"after": "page-", "most": 2}).json()
    second = admin.get(QUEUES, params={"after": first[-1]["queue"], "most": 2}).json()

    assert [queue["queue"] for queue in first + second] == names[:4]
    assert admin.get(QUEUES, params={"most": 501}).status_code == 422


def test_the_ledger_and_the_timeline_of_a_job_come_a_page_at_a_time(admin, submit, store, queue):
    job_id = submit()
    tokens = []
    for _ in range(4):
        lease = claim_one(store, queues=(queue,))
        store.run(calls.release(lease))
        tokens.append(str(lease.token))
    path = f"/api/v1/jobs/{job_id}"

    last = admin.get(f"{path}/ledger", params={"most": 2}).json()
    before = admin.get(f"{path}/ledger", params={"most": 9, "before": last[0]["token"]}).json()
    moments = admin.get(f"{path}/timeline", params={"most": 3}).json()

    assert [entry["token"] for entry in before + last] == tokens
    assert [moment["token"] for moment in moments] == tokens[1:]


def test_a_mistyped_queue_is_compared_with_some_of_very_many(monkeypatch):
    """A comparison takes 40 us, on the event loop."""
    compared = []
    find = difflib.get_close_matches

    def counting(word, names, n):
        compared.append(len(names))
        return find(word, names, n)

    monkeypatch.setattr(difflib, "get_close_matches", counting)
    names = [f"tenant-{number:05}" for number in range(15_000)]

    assert "tenant-00012" in suggest.close_to("tenant-00012x", names)
    assert compared == [suggest.COMPARED_MAX]


def test_the_jobs_of_a_batch_go_to_a_bounded_number_of_queues(admin, monkeypatch):
    monkeypatch.setattr(routes, "QUEUES_MAX", 3)
    jobs = [{"task": "charge", "queue": f"of-many-{number}"} for number in range(4)]

    refused = admin.post("/api/v1/jobs/batch", json={"jobs": jobs})

    assert (refused.status_code, code_of(refused)) == (422, "out_of_bounds")
    assert "at most 3 queues" in refused.json()["detail"]
    assert admin.post("/api/v1/jobs/batch", json={"jobs": jobs[:3]}).status_code == 201


REPEATED = b'"delay_seconds":1e-308,' * 1_000


@pytest.mark.parametrize(
    ("path", "body", "subject"),
    [
        ("", b'{%s"task":"a"}' % REPEATED, "the job"),
        ("/batch", b'{"jobs":[{"task":"a"},{%s"task":"a"}]}' % REPEATED, "jobs[1]"),
    ],
    ids=["one", "many"],
)
def test_a_job_with_members_that_repeat_is_refused_undecoded(admin, path, body, subject):
    """Each such number takes 15 us: 4 MiB of them held the event loop for seconds."""
    refused = admin.post(f"/api/v1/jobs{path}", content=body, headers={"content-type": "application/json"})

    assert (refused.status_code, code_of(refused)) == (422, "out_of_bounds")
    assert f"{subject} has 23" in refused.json()["detail"]
