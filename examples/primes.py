"""A handler that computes for long: in a process of its own, where it blocks no other and can be killed.

    FAULTLINE_DSN=postgresql://... python examples/primes.py

A child process imports this file to find the handlers, hence the guard at its end. The last job would compute
for hours; its timeout ends it, which is not possible with a thread.
"""

import asyncio
import os
from datetime import timedelta

from faultline import Faultline, Retry, bury

app = Faultline()


@app.task(run="process", queue="maths", max_attempts=1)
def count_primes(below: int) -> dict[str, int]:
    sieve = bytearray([1]) * below
    sieve[:2] = b"\0\0"
    for number in range(2, int(below**0.5) + 1):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, below, number)))
    return {"primes": sum(sieve), "process": os.getpid()}


@app.task(run="process", queue="maths", timeout=timedelta(seconds=4), retry=Retry(on={TimeoutError: bury}))
def factor(number: int) -> list[int]:
    divisor = 2
    while number % divisor:
        divisor += 1
    return [divisor, number // divisor]


@app.task(queue="maths")
async def tick() -> str:
    return "the loop is free"


async def main() -> None:
    counted = [await count_primes.aenqueue(below=below) for below in (10, 1_000, 1_000_000)]
    endless = await factor.aenqueue((2**61 - 1) * (2**89 - 1))
    ticked = await tick.aenqueue()

    await app.arun_worker(queues="maths", children=4, stop_after=5)

    for handle in counted:
        info = await handle.ainfo()
        elsewhere = info.result["process"] != os.getpid()
        print(f"primes below {info.args['below']}: {info.result['primes']}, in another process: {elsewhere}")
    print("meanwhile:", await ticked.aresult(timeout=30))
    told = await endless.ainfo()
    print(f"factor: {told.state}, {(told.error or '').partition(chr(10))[0]}")
    await app.aclose()


if __name__ == "__main__":
    asyncio.run(main())
