"""One server and one database for a file of tests; each test keeps to a queue of its own."""

import secrets

import pytest

from tests.http.serving import serving


@pytest.fixture(scope="module")
def database(shared):
    """Starting a server costs more than most of these tests."""
    return shared


@pytest.fixture(scope="module")
def service(database):
    with serving(database, drills=True) as running:  # every route there is
        yield running


@pytest.fixture(scope="module")
def admin(service):
    """A client that may do everything."""
    return service.client(service.key("admin"))


@pytest.fixture
def queue():
    """The name of a queue that no other test uses."""
    return f"q-{secrets.token_hex(4)}"


@pytest.fixture
def submit(admin, queue):
    """Submit a job to the test's own queue and give its id."""

    def submit(task="charge", **asked):
        answer = admin.post("/api/v1/jobs", json={"task": task, "queue": queue, **asked})
        assert answer.status_code in (200, 201), answer.text
        return answer.json()["id"]

    return submit
