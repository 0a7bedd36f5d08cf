"""What lasts longer than a look at a key: what it came to is handed over, or dropped by name."""

import asyncio

import pytest

from faultline.errors import NotAuthenticated
from faultline.server.auth.key_lifetime import while_known


def test_what_comes_while_the_key_is_found_revoked_is_dropped_by_name():
    async def main():
        dropped: list[str] = []
        come = asyncio.Event()

        async def work():
            await come.wait()
            return "jobs"

        async def look():
            come.set()
            await asyncio.sleep(0.05)  # the work ends meanwhile
            raise NotAuthenticated("revoked")

        with pytest.raises(NotAuthenticated):
            await while_known(work(), look, 0.01, dropped=dropped.append)
        assert dropped == ["jobs"]

    asyncio.run(main())


def test_what_comes_as_the_caller_hangs_up_is_dropped_by_name():
    async def main():
        dropped: list[str] = []

        async def work():
            await asyncio.sleep(0.01)
            waiting.cancel()
            return "jobs"

        async def look(): ...

        waiting = asyncio.create_task(while_known(work(), look, dropped=dropped.append))
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert dropped == ["jobs"]

    asyncio.run(main())


def test_what_is_handed_over_or_never_came_is_not_dropped():
    async def main():
        dropped: list[str] = []

        async def work(seconds):
            await asyncio.sleep(seconds)
            return "jobs"

        async def broken():
            await asyncio.sleep(0.01)
            raise ValueError("broken")

        async def look(): ...

        assert await while_known(work(0.05), look, 0.01, dropped=dropped.append) == "jobs"
        with pytest.raises(TimeoutError):
            await while_known(work(60), look, 0.01, 0.05, dropped=dropped.append)
        with pytest.raises(ValueError, match="broken"):
            await while_known(broken(), look, dropped=dropped.append)
        assert dropped == []

    asyncio.run(main())
