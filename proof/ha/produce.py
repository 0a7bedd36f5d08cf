"""A producer: `python -m proof.ha.produce NAME FIRST RATE plain|keyed OUT`, on FAULTLINE_DSN.

It writes every answer down. With a key it sends a job again until it is answered; without one it must not.
"""

import json
import random
import signal
import sys
import time
from types import FrameType
from typing import TextIO

from faultline.errors import FaultlineError
from proof.ha import shop

TASKS = (shop.work, shop.work, shop.threaded, shop.plain)
MILLISECONDS = (0, 0, 50, 200, 1000, 4000)
going = True


def stop(number: int, frame: FrameType | None) -> None:
    global going
    going = False


def main(name: str, first: int, rate: float, how: str, out: str) -> None:
    signal.signal(signal.SIGTERM, stop)
    dice, n = random.Random(first), first
    with open(out, "a", buffering=1) as file:  # noqa: PTH123
        while going:
            began = time.monotonic()
            send(file, name, n, dice, keyed=how == "keyed")
            n += 1
            time.sleep(max(0.0, 1 / rate - (time.monotonic() - began)))


def send(file: TextIO, name: str, n: int, dice: random.Random, *, keyed: bool) -> None:
    task, ms = dice.choice(TASKS), dice.choice(MILLISECONDS)
    wanted = task.using(key=f"k{n}") if keyed else task
    while True:
        began = time.monotonic()
        try:
            said: dict[str, object] = {"id": wanted.enqueue(n=n, ms=ms).id}
        except FaultlineError as error:
            said = {"error": type(error).__name__, "said": str(error)[:160]}
        line = {"t": time.time(), "who": name, "n": n, "call": round(time.monotonic() - began, 3), **said}
        file.write(json.dumps(line) + "\n")
        if "id" in said or not keyed or not going:
            return
        time.sleep(0.2)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4], sys.argv[5])
