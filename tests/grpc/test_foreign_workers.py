"""Workers that are not ours: the one in examples/, judged by the kit; and a bad one, which it must notice."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest

from faultline.lab.conformance.run_checks import check_worker
from faultline.store import calls
from tests.grpc.conftest import serving
from tests.support import new_job
from tests.worker.harness import effect_key

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "node-worker"
CACHE = Path(tempfile.gettempdir()) / f"faultline-node-worker-{os.getuid()}"


@pytest.fixture(scope="module")
def node_worker():
    """A copy of the example with its packages; where they cannot be had the test says so, loudly."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            _skip(f"{program} is not installed here")
    CACHE.mkdir(exist_ok=True)
    for name in ("package.json", "worker.js", "main.js"):
        shutil.copy(EXAMPLE / name, CACHE / name)
    if not (CACHE / "node_modules" / "@grpc" / "proto-loader").is_dir():
        command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
        made = subprocess.run(command, cwd=CACHE, capture_output=True, text=True, timeout=110, check=False)
        if made.returncode:
            _skip(f"npm could not install its packages: {made.stderr.strip()[-300:]}")
    return CACHE


def _skip(why):
    warnings.warn(pytest.PytestWarning(f"the worker in JavaScript was not run: {why}"), stacklevel=2)
    pytest.skip(why)


@pytest.mark.long
@pytest.mark.filterwarnings("default::pytest.PytestWarning")
def test_the_worker_in_javascript_keeps_the_protocol(node_worker, monkeypatch):
    monkeypatch.setenv("FAULTLINE_PROTO", str(ROOT / "proto"))
    command = ["node", str(node_worker / "main.js")]

    verdicts = asyncio.run(check_worker("127.0.0.1:0", command, lambda verdict: None, lambda url: None))

    assert [(verdict.name, verdict.told) for verdict in verdicts if verdict.word != "kept"] == []


@pytest.mark.long
@pytest.mark.filterwarnings("default::pytest.PytestWarning")
def test_the_worker_in_javascript_works_for_a_real_server(node_worker, database):
    async def main():
        async with serving(database) as place:
            ids = [
                await place.store.run(calls.enqueue(new_job("send_receipt", f'{{"order": {n}}}')))
                for n in range(50)
            ]
            keys = [effect_key(database, id, "receipt") for id in ids]
            known = {
                "FAULTLINE_SERVER": f"grpc://{place.target}", "FAULTLINE_API_KEY": place.key,
                "FAULTLINE_PROTO": str(ROOT / "proto"),
            }  # fmt: skip
            worker = await asyncio.create_subprocess_exec(
                "node",
                str(node_worker / "main.js"),
                env={**os.environ, **known},
                stderr=asyncio.subprocess.DEVNULL,
            )
            try:
                async with asyncio.timeout(60):
                    ended: list[int] = []
                    while len(ended) < len(ids):
                        await asyncio.sleep(0.1)
                        ended = await place.store.run(calls.ended(ids))
            finally:
                worker.terminate()
                await worker.wait()
            return [await place.store.run(calls.get(id)) for id in ids], keys

    jobs, keys = asyncio.run(main())
    assert {(str(job.state), job.attempt) for job in jobs} == {("succeeded", 1)}
    assert [job.result for job in jobs] == [{"sent": True, "key": key} for key in keys]


RUDE = """
import asyncio, os, sys
import grpc
from faultline.rpc.v1 import worker_pb2 as pb, worker_pb2_grpc

async def main():
    target = os.environ["FAULTLINE_SERVER"].removeprefix("grpc://")
    async with grpc.aio.insecure_channel(target) as channel:
        stream = worker_pb2_grpc.WorkersStub(channel).Session()
        await stream.write(pb.FromWorker(ask=pb.Ask(id=1, room=5000)))
        await asyncio.sleep(60)

asyncio.run(main())
"""


def test_a_worker_that_breaks_the_protocol_is_told_so(monkeypatch):
    monkeypatch.setattr("faultline.lab.conformance.worker_checks.PATIENCE", 1.5)
    monkeypatch.setattr("faultline.lab.conformance.scripted_server.PATIENCE", 0.1)
    told: list[Any] = []

    verdicts = asyncio.run(
        check_worker("127.0.0.1:0", [sys.executable, "-c", RUDE], told.append, lambda url: None)
    )

    assert verdicts == told
    broken = {verdict.name: verdict.told for verdict in verdicts if verdict.word == "broken"}
    assert "it opens a session and says hello" in broken
    assert "the first message of a session was ask, not hello" in broken["it broke no other rule"]
    assert "an Ask for 5000 jobs" in broken["it broke no other rule"]
