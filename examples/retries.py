"""The ways in which a job ends: a result, an exception, `Dead`; and retry rules for classes of exceptions.

FAULTLINE_DSN=postgresql://... python examples/retries.py
"""

import asyncio
from datetime import timedelta

from faultline import Constant, Dead, Faultline, Job, Retry, bury, ignore

app = Faultline()

rules = Retry(
    policy=Constant(timedelta(milliseconds=20)),
    on={PermissionError: bury, FileNotFoundError: ignore},
)


@app.task(max_attempts=3, retry=rules)
async def fetch(job: Job, url: str) -> str:
    match url:
        case "flaky" if job.attempt < 3:
            raise TimeoutError("no answer")
        case "forbidden":
            raise PermissionError("not with these credentials")
        case "missing":
            raise FileNotFoundError("nothing there, nothing to do")
        case "closed":
            return Dead("the account is closed")  # type: ignore[return-value]
    return f"fetched {url} in attempt {job.attempt}"


async def main() -> None:
    handles = [await fetch.aenqueue(url) for url in ("plain", "flaky", "forbidden", "missing", "closed")]
    await app.arun_worker(stop_after=7)
    for handle in handles:
        info = await handle.ainfo()
        told = info.result or (info.error or "").partition("\n")[0]
        print(f"{info.args['url']:10} {info.state:10} attempt {info.attempt}  {told}")

    forbidden = handles[2].id
    await app.areplay(forbidden)
    print("replayed:", (await app.aget(forbidden)).state)
    await app.aclose()


if __name__ == "__main__":
    asyncio.run(main())
