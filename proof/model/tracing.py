"""Real histories, forged ones and made-up ones, each judged twice: by the Python relation and by TLC."""

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from proof.model import render
from proof.model.forgeries import FORGERIES, fits
from proof.model.history import JobHistory
from proof.model.rehearsals import REHEARSED, rehearse
from proof.model.relation import check
from proof.model.report import ModelCheck
from proof.model.walks import made_up

Told = Callable[[str], None]

LEGAL: Final = "legal"
AGREE: Final = "agree"
SHORT: Final = 200
"""How many histories TLC is given at once; longer ledgers are for the Python relation alone."""
PARTS: Final = len(REHEARSED) + 3


def check_all(
    command: list[str] | None, dsn: str | None, seed: int, count: int, tell: Told
) -> list[ModelCheck]:
    """A line for each drill and each forgery, and one for how far both relations agree."""
    played = rehearse(dsn, tell)
    lines = [line for name, told in played.items() for line in _real(command, name, told)]
    true = next((one for told in played.values() for one in told if fits(one)), None)
    tell("forged histories")
    lines += _forged(command, true)
    tell("made-up histories")
    if command:
        lines.append(_agreement(command, seed, count))
    return lines


def _real(command: list[str] | None, name: str, told: Sequence[JobHistory]) -> list[ModelCheck]:
    """The ledger of a real run is legal, by Python and by TLC."""
    began = time.monotonic()
    breaches = [breach.invariant for one in told for breach in check(one)]
    word = breaches[0] if breaches else LEGAL
    lines = [ModelCheck("trace", f"{name}, in Python", LEGAL, word, len(told), time.monotonic() - began)]
    if command:
        short = told[:SHORT]
        walked, seconds = _walk(command, short)
        word = LEGAL if len(walked) == len(short) else f"{len(short) - len(walked)} refused"
        lines.append(ModelCheck("trace", f"{name}, in TLC", LEGAL, word, len(short), seconds))
    return lines


def _forged(command: list[str] | None, true: JobHistory | None) -> list[ModelCheck]:
    """Both refuse each false history; Python names the promise it breaks."""
    if true is None:  # without a true history there is no forgery: a failure, not a pass
        return [ModelCheck("forged", one.says, one.expects, "nothing to forge", 0, 0.0) for one in FORGERIES]
    lies = [forgery.forge(true) for forgery in FORGERIES]
    walked, seconds = _walk(command, [*lies, true]) if command else ({len(lies)}, 0.0)
    lines = []
    for at, (forgery, lie) in enumerate(zip(FORGERIES, lies, strict=True)):
        names = {breach.invariant for breach in check(lie)}
        word = forgery.expects if forgery.expects in names else ", ".join(sorted(names)) or LEGAL
        if at in walked or len(lies) not in walked:
            word = "legal, says TLC" if at in walked else "the true one is refused by TLC"
        lines.append(ModelCheck("forged", forgery.says, forgery.expects, word, 1, seconds / len(lies)))
    return lines


def _agreement(command: list[str], seed: int, count: int) -> ModelCheck:
    """Both relations agree on every made-up history; enough of them are legal and enough are not."""
    walks = made_up(seed, count)
    walked, seconds = _walk(command, walks)
    by_python = {at for at, one in enumerate(walks) if not check(one)}
    word = AGREE if walked == by_python else f"they differ on {sorted(walked ^ by_python)[:5]}"
    if not count / 4 < len(walked) < count * 3 / 4:
        word = f"void: {len(walked)} of {count} are legal"
    return ModelCheck(
        "relation", f"Python and TLC on made-up histories, seed {seed}", AGREE, word, count, seconds
    )


def _walk(command: list[str], told: Sequence[JobHistory]) -> tuple[set[int], float]:
    with tempfile.TemporaryDirectory(prefix="faultline-traces-") as folder:
        walked, found = render.legal(command, told, Path(folder))
    if found.word != "holds":
        raise RuntimeError(f"TLC did not come to an end:\n{found.output[-2000:]}")
    return walked, found.seconds
