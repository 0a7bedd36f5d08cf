"""A producer over HTTP: `python -m proof.ha.produce_http NAME FIRST RATE OUT URL...`.

The API key is in FAULTLINE_API_KEY. It sends each job under its key until it is answered, to the next
replica after each failure.
"""

import itertools
import json
import os
import signal
import sys
import time
import urllib.error
import urllib.request
from types import FrameType
from typing import Any, TextIO

GIVE_UP_SECONDS = 30.0
"""Twice what the judge allows, so that it sees how long a late answer takes."""

going = True


def stop(number: int, frame: FrameType | None) -> None:
    global going
    going = False


def main(name: str, first: int, rate: float, out: str, urls: list[str]) -> None:
    signal.signal(signal.SIGTERM, stop)
    replicas, n = itertools.cycle(urls), first
    with open(out, "a", buffering=1) as file:  # noqa: PTH123
        while going:
            began = time.monotonic()
            send(file, name, n, replicas)
            n += 1
            time.sleep(max(0.0, 1 / rate - (time.monotonic() - began)))


def send(file: TextIO, name: str, n: int, replicas: "itertools.cycle[str]") -> None:
    job = {"task": "work", "args": {"n": n, "ms": 50}}
    while True:
        began = time.monotonic()
        status, said = ask(next(replicas) + "/api/v1/jobs", job, f"http-{n}")
        answer = {"id": said["id"]} if status in (200, 201) else {"error": f"{status} {said.get('code')}"}
        line = {"t": time.time(), "who": name, "n": n, "call": round(time.monotonic() - began, 3), **answer}
        file.write(json.dumps(line) + "\n")
        if "id" in answer or not going:
            return
        time.sleep(0.3)


def ask(url: str, job: dict[str, Any], key: str) -> tuple[int, dict[str, Any]]:
    headers = {
        "Authorization": f"Bearer {os.environ['FAULTLINE_API_KEY']}",
        "Content-Type": "application/json",
        "Idempotency-Key": key,
    }
    request = urllib.request.Request(url, json.dumps(job).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=GIVE_UP_SECONDS) as reply:
            return reply.status, json.loads(reply.read() or "{}")
    except urllib.error.HTTPError as error:
        said = error.read()
        return error.code, json.loads(said) if said[:1] == b"{" else {}
    except OSError as error:
        return 0, {"code": type(error).__name__}


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4], sys.argv[5:])
