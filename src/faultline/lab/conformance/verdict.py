"""What a check found."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

import grpc

CHECK_SECONDS_MAX: Final = 60.0

Word = Literal["kept", "broken", "skipped"]
T = TypeVar("T")


class Broken(AssertionError):
    """The other side did not do what the protocol says; the message tells what it did."""


class Skipped(Exception):
    """The check was not possible; the message tells why."""


@dataclass(frozen=True, slots=True)
class ConformanceVerdict:
    """One check by its name, and what came of it."""

    name: str
    word: Word
    told: str = ""
    seconds: float = 0.0

    def document(self) -> dict[str, Any]:
        return {
            "check": self.name,
            "verdict": self.word,
            "told": self.told,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class ConformanceCheck:
    """A sentence about the protocol, and how to find out whether it is true."""

    name: str
    make: Callable[[Any], Awaitable[None]]

    async def judge(self, place: Any) -> ConformanceVerdict:
        """Make the check; whatever happens becomes a verdict."""
        began = time.monotonic()

        def say(word: Word, told: str = "") -> ConformanceVerdict:
            return ConformanceVerdict(self.name, word, told, time.monotonic() - began)

        try:
            async with asyncio.timeout(CHECK_SECONDS_MAX):
                await self.make(place)
        except Skipped as why:
            return say("skipped", str(why))
        except Broken as why:
            return say("broken", str(why))
        except TimeoutError:
            return say("broken", f"no end of it in {CHECK_SECONDS_MAX:.0f} s")
        except grpc.aio.AioRpcError as error:
            return say("broken", f"an unexpected {error.code().name}: {error.details()}")
        except Exception as error:  # the answer was so unexpected that the check itself failed
            return say("broken", f"it was answered so that the check failed: {error!r}"[:300])
        return say("kept")


def sentence(function: Callable[..., Any]) -> str:
    """The name of a check: its function's name, as words."""
    return function.__name__.removeprefix("check_").replace("_", " ")


def hold(true: bool, otherwise: str) -> None:
    """Go on if the protocol is kept."""
    if not true:
        raise Broken(otherwise)


def same(subject: str, got: T, wanted: T) -> None:
    """Go on if what came is what should have come."""
    if got != wanted:
        raise Broken(f"{subject} is {got!r}, and should be {wanted!r}")


async def refused_with(calling: Awaitable[Any], *codes: grpc.StatusCode) -> grpc.aio.AioRpcError:
    """The refusal of a call, if it is one of these."""
    try:
        answer = await calling
    except grpc.aio.AioRpcError as error:
        if error.code() not in codes:
            wanted = " or ".join(code.name for code in codes)
            raise Broken(f"it was refused with {error.code().name}, and should be with {wanted}") from None
        return error
    said = str(answer).strip().replace("\n", " ")[:120]
    raise Broken(f"it was answered ({said}), and should be refused")


def checks_in(names: Mapping[str, Any]) -> tuple[ConformanceCheck, ...]:
    """The checks that a module defines, in its order: its functions `check_...`."""
    return tuple(
        ConformanceCheck(sentence(function), function)
        for name, function in names.items()
        if name.startswith("check_")
    )
