"""A keyed enqueue that its caller gives up and sends again: `python -m proof.ha.retry KEY N OUT`."""

import asyncio
import json
import sys
import time

from proof.ha import shop

GIVE_UP_SECONDS = 1.5


async def main(key: str, n: int, out: str) -> None:
    for turn in (1, 2):
        began = time.monotonic()
        try:
            async with asyncio.timeout(GIVE_UP_SECONDS):
                handle = await shop.work.using(key=key).aenqueue(n=n, ms=0)
        except TimeoutError:
            print(f"try {turn} given up", flush=True)
            continue
        took = time.monotonic() - began
        line = {"t": time.time(), "who": f"retry-{turn}", "n": n, "call": round(took, 3), "id": handle.id}
        with open(out, "a") as file:  # noqa: ASYNC230, PTH123
            file.write(json.dumps(line) + "\n")
        print(f"try {turn} acknowledged job {handle.id} after {1000 * took:.0f} ms", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
