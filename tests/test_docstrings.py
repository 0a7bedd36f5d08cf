"""Every example in the docstrings of the vocabulary and the client runs and says what it says."""

import doctest
import importlib

import pytest

WORDS = (
    "args.codec", "args.document", "args.models", "args.results", "args.signature", "bounds", "app",
    "client.bulk", "client.handle", "client.wakeups", "client.task_client", "config",
    "durations", "errors", "failpoints", "job", "lease", "notify", "outcome", "retry", "task",
    "server.http.http_app", "server.http.api_context", "server.config", "server.listener.listen_policy",
    "server.limits", "server.token_bucket", "server.listener.revoked_certificates",
    "store.driver.notifications",
    "telemetry.context", "telemetry.events", "telemetry.formats", "telemetry.text",
)  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_examples_in_docstrings_run(word):
    found = doctest.testmod(importlib.import_module(f"faultline.{word}"))

    assert found.failed == 0
