"""The OpenAPI document is published, checked in, and true: no request it allows or forbids is a crash."""

import os
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import FlakyStrategyDefinition
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from faultline import errors
from faultline.server import problems
from faultline.server.http.openapi import document, text
from faultline.server.limits import Limits
from tests.http.serving import serving

ROOT = Path(__file__).parents[2]

CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance,
    response_schema_conformance, negative_data_rejection,
]  # fmt: skip

REQUESTS = int(os.environ.get("FAULTLINE_REQUESTS", "40"))
"""How many of each operation the long form asks, of each kind of caller."""

NOT_ASKED = {"/api/v1/events", "/api/v1/drills/{name}/runs"}
"""A stream without an end, and processes that take seconds: both have tests of their own."""

OPERATIONS = {
    f"{method.upper()} {path}": (method, path)
    for path, methods in document()["paths"].items()
    for method in methods
    if path not in NOT_ASKED
}


@pytest.fixture(scope="module")
def service(database):
    with serving(database, Limits(wait_seconds_max=0.05), drills=True) as running:
        yield running


@pytest.fixture(scope="module")
def session(service):
    with requests.Session() as session:
        session.headers["authorization"] = f"Bearer {service.key('admin')}"
        yield session


@pytest.fixture(scope="module", params=["without a key", "read", "operate", "admin"])
def caller(request, service):
    """A session without a key, or with a key of this scope."""
    with requests.Session() as session:
        if request.param != "without a key":
            session.headers["authorization"] = f"Bearer {service.key(request.param)}"
        yield session


def test_the_document_that_is_checked_in_is_the_one_that_is_served(admin):
    assert (ROOT / "docs/openapi.json").read_text() == text(), "run: make openapi"
    assert admin.get("/api/v1/openapi.json").json() == document()


def test_a_server_without_drills_describes_all_routes_but_theirs(database):
    with serving(database) as plain:
        described = plain.client().get("/api/v1/openapi.json").json()["paths"]

    assert set(document()["paths"]) - set(described) == {
        "/api/v1/drills", "/api/v1/drills/runs", "/api/v1/drills/runs/{run_id}", "/api/v1/drills/{name}/runs"
    }  # fmt: skip


def test_the_guide_names_every_code_that_a_client_may_be_told():
    """By the code a client decides what to do; one that no page names cannot be decided on."""
    kinds = {kind for kind in vars(problems).values() if isinstance(kind, problems.ProblemKind)}
    # Raised by an app or a worker, and by no route.
    elsewhere = {errors.BadArguments, errors.UnknownTask, errors.LeaseLost, errors.WaitTimeout}
    kinds |= {kind for error, kind in problems.TABLE.items() if error not in elsewhere}
    kinds -= {problems.NO_DEADLINE, problems.PROTOCOL}  # only calls of gRPC meet them
    told = (ROOT / "docs/guides/server.md").read_text()

    assert [kind.code for kind in kinds if f"`{kind.code}`" not in told] == []


def test_the_protocol_names_the_codes_of_a_call_beside_their_grpc_status():
    table = (ROOT / "docs/reference/protocol.md").read_text().partition("## How a call is refused")[2]
    rows = dict(re.findall(r"(?m)^\| `([A-Z_]+)` \| ((?:`[a-z_]+` ?)+)\|", table))
    told = {(status, code) for status, codes in rows.items() for code in re.findall("[a-z_]+", codes)}
    kinds = [kind for kind in vars(problems).values() if isinstance(kind, problems.ProblemKind)]
    known = {(kind.grpc, kind.code) for kind in (*kinds, *problems.TABLE.values())}

    assert told <= known
    assert {"no_deadline", "protocol", "too_many", "lease_lost"} <= {code for _, code in told}


def test_every_operation_says_what_it_does_and_how_it_refuses():
    for path, operations in document()["paths"].items():
        for method, operation in operations.items():
            assert operation.get("description"), (method, path)
            assert "default" in operation["responses"], (method, path)


def ask_at_random(service, session, name, examples, seeded=True):
    """Requests that fit the document, and requests that do not; every answer as the document says."""
    method, path = OPERATIONS[name]
    operation = schemathesis.openapi.from_dict(document())[path][method.upper()]

    @settings(
        max_examples=examples, deadline=None, derandomize=seeded, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(
        case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
        | operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
    )
    def ask(case):
        case.call_and_validate(base_url=service.url, session=session, checks=CHECKS, timeout=20)

    ask()


# Hypothesis notices that `random` was used: by the service, which runs in a thread of this process.
@pytest.mark.filterwarnings(
    "ignore:Do not use the `random` module:hypothesis.errors.HypothesisDeprecationWarning"
)
@pytest.mark.parametrize("name", OPERATIONS)
def test_no_request_the_document_allows_or_forbids_is_answered_with_a_crash(service, session, name):
    ask_at_random(service, session, name, 5)


@pytest.mark.filterwarnings(
    "ignore:Do not use the `random` module:hypothesis.errors.HypothesisDeprecationWarning"
)
@pytest.mark.long
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_caller_gets_answers_that_the_document_describes(service, caller, name):
    """Other requests each time; what fails is printed with what makes it again."""
    ask_at_random(service, caller, name, REQUESTS, seeded=False)


@pytest.mark.long
def test_so_do_requests_that_go_on_from_what_the_last_ones_answered(service, session):
    """Jobs that were submitted are asked for, cancelled, replayed: ids come from answers."""
    schema: Any = schemathesis.openapi.from_dict(document())
    for path in NOT_ASKED:
        schema = schema.exclude(path=path)
    machine: Any = schema.as_state_machine()

    steps, broken = [], []

    class Chain(machine):  # type: ignore[misc]
        def get_call_kwargs(self, case):
            return {"base_url": service.url, "session": session, "timeout": 20}

        def validate_response(self, response, case, **_):
            steps.append(f"{case.method} {case.path}")
            try:
                case.validate_response(response, checks=CHECKS)
            except BaseException as error:
                broken.append(error)
                raise

    a_few = settings(
        max_examples=5, stateful_step_count=12, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    for _ in range(REQUESTS // 4):
        # Jobs outlive an example, so what can be drawn next changes under the generator: it may stop a round.
        with suppress(FlakyStrategyDefinition):
            Chain.run(settings=a_few)

    assert broken == []
    assert len(set(steps)) >= len(OPERATIONS) // 2, Counter(steps)
