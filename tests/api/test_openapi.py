"""The OpenAPI document is published, checked in, and true: no request it allows or forbids is a crash."""

from pathlib import Path

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from faultline.api.openapi import document, text
from faultline.server.limits import Limits
from tests.api.serving import serving

ROOT = Path(__file__).parents[2]

CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance,
    response_schema_conformance, negative_data_rejection,
]  # fmt: skip

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
    with serving(database, Limits(wait_seconds_max=0.05)) as running:
        yield running


@pytest.fixture(scope="module")
def session(service):
    with requests.Session() as session:
        session.headers["authorization"] = f"Bearer {service.key('admin')}"
        yield session


def test_the_document_that_is_checked_in_is_the_one_that_is_served(admin):
    assert (ROOT / "docs/openapi.json").read_text() == text(), "run: make openapi"
    assert admin.get("/api/v1/openapi.json").json() == document()


def test_every_operation_says_what_it_does_and_how_it_refuses():
    for path, operations in document()["paths"].items():
        for method, operation in operations.items():
            assert operation.get("description"), (method, path)
            assert "default" in operation["responses"], (method, path)


def ask_at_random(service, session, name, examples):
    """Requests that fit the document, and requests that do not; every answer as the document says."""
    method, path = OPERATIONS[name]
    operation = schemathesis.openapi.from_dict(document())[path][method.upper()]

    @settings(
        max_examples=examples, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(
        case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
        | operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
    )
    def ask(case):
        case.call_and_validate(base_url=service.url, session=session, checks=CHECKS, timeout=20)

    ask()


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_request_the_document_allows_or_forbids_is_answered_with_a_crash(service, session, name):
    ask_at_random(service, session, name, 5)


@pytest.mark.long
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_thousand_such_requests_each_are_answered_as_the_document_says(service, session, name):
    ask_at_random(service, session, name, 1_000)
