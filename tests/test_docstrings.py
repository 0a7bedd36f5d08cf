"""Every example in the docstrings of the vocabulary and the client runs and says what it says."""

import doctest
import importlib

import pytest

WORDS = (
    "args.codec", "args.document", "args.models", "args.results", "args.signature", "bounds", "client.app",
    "client.batches", "client.handle", "client.hints", "client.tasks", "config",
    "durations", "errors", "failpoints", "job", "lease", "notify", "outcome", "retry", "task",
    "api.app", "api.desk", "server.config", "server.door", "server.limits", "server.rates", "server.revoked",
    "store.news",
    "telemetry.context", "telemetry.events", "telemetry.formats", "telemetry.text",
)  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_examples_in_docstrings_run(word):
    found = doctest.testmod(importlib.import_module(f"faultline.{word}"))

    assert found.failed == 0
