"""Every example in the docstrings of the vocabulary and the client runs and says what it says."""

import doctest
import importlib

import pytest

WORDS = (
    "args.codec", "args.document", "args.models", "args.results", "args.signature", "bounds", "client.app",
    "client.batches", "client.handle", "client.hints", "client.tasks", "config",
    "durations", "errors", "failpoints", "job", "lease", "outcome", "retry", "task",
    "api.app", "api.desk", "api.rates", "server.config", "server.door", "server.limits",
    "telemetry.context", "telemetry.events", "telemetry.formats", "telemetry.text",
)  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_examples_in_docstrings_run(word):
    found = doctest.testmod(importlib.import_module(f"faultline.{word}"))

    assert found.failed == 0
