"""`conformance`: a line a check, a document for programs, and an exit code."""

import json

import pytest

from faultline.lab.conformance import run_checks as kit
from faultline.lab.conformance.verdict import ConformanceVerdict

FOUND = [
    ConformanceVerdict("a beat renews what is held", "kept"),
    ConformanceVerdict("a stale beat is lost", "broken", "it was answered held"),
    ConformanceVerdict("a cancelled job is told", "skipped", "the key has no scope `operate`"),
]


@pytest.fixture
def found(monkeypatch):
    """What the kit finds, without a server."""
    asked: dict[str, object] = {}

    async def check_server(target, key, told, credentials=None):
        asked.update(target=target, key=key, secure=credentials is not None)
        for verdict in FOUND:
            told(verdict)
        return FOUND

    monkeypatch.setattr(kit, "check_server", check_server)
    return asked


def test_each_check_is_a_line_and_a_broken_one_is_exit_code_3(run, found):
    told = run("conformance", "grpcs://queue.example:7000", env={"FAULTLINE_API_KEY": "flk_secret"})

    assert told.exit_code == 3
    assert found == {"target": "queue.example:7000", "key": "flk_secret", "secure": True}
    assert "BROKEN   a stale beat is lost: it was answered held" in told.stdout
    assert told.stdout.splitlines()[-1] == "1 kept, 1 broken, 1 skipped"


def test_a_program_gets_a_document(run, found, tmp_path):
    (tmp_path / "key").write_text("flk_secret\n")

    told = run("--output", "json", "conformance", "queue.example", "--key-file", tmp_path / "key")

    document = json.loads(told.stdout)
    assert (document["conforms"], document["kept"], document["broken"]) == (False, 1, 1)
    assert document["checks"][1]["told"] == "it was answered held"
    assert found == {"target": "queue.example:8001", "key": "flk_secret", "secure": False}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ftp://queue.example"], "not the URL of a server"),
        (["grpc://"], "names no host and port"),
        ([], "give the URL of one server"),
        (["grpc://a", "grpc://b"], "give the URL of one server"),
        (["--worker", "--listen", "127.0.0.1:99999999"], "is not an address"),
        (["--worker", "--", "/no/such/program"], "cannot start"),
    ],
)
def test_what_cannot_work_is_said_in_one_line(run, words, said):
    told = run("conformance", *words)

    assert told.exit_code == 2
    assert said in told.stderr
    assert len(told.stderr.splitlines()) == 1


def test_a_server_that_is_not_there_is_told(run, monkeypatch):
    monkeypatch.setattr(kit, "CONNECT_SECONDS", 0.3)

    told = run("conformance", "grpc://127.0.0.1:1")

    assert told.exit_code == 2
    assert "no gRPC server answers at 127.0.0.1:1" in told.stderr
