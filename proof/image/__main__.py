"""`python -m proof.image`: build the image, run compose.yaml, ask the questions, take it all down.

It needs root on Debian or a relative: for containers, and for apt, which brings the programs that make them.
Images stay in a cache of their own, so a second run builds only what changed. What runs has a network
namespace of its own.
"""

import contextlib
import fcntl
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

from proof.image import asked, images
from proof.image.composed import Composed
from proof.image.engine import Engine, EngineFailed, install_missing
from scripts import tools

FOLDER = Path("/var/cache/faultline/images")
SET_FLAGS, UP = 0x8914, 0x1
CANNOT = 2


def main() -> int:
    if os.geteuid() != 0 or sys.platform != "linux":
        print("image-check needs root on Linux: it makes containers. Nothing was built.", file=sys.stderr)
        return CANNOT
    engine = Engine(FOLDER)
    if sys.argv[1:] == ["inside"]:
        return run(engine)
    install_missing()
    tools.main(["prometheus"])
    engine.prepare()
    try:
        with timed("images"):
            for name, what in images.obtain(engine).items():
                print(f"  {name:12} {what}", flush=True)
        with timed("build the Dockerfile"):
            engine.build(images.ROOT, images.OURS, PYTHON=images.names()["python"])
    except EngineFailed as failed:
        print(f"FAILED {failed}")
        return 1
    # The ports are those of the compose file. In a namespace they are free, and closed to other machines.
    return subprocess.run(
        ["unshare", "--net", sys.executable, "-m", "proof.image", "inside"], check=False
    ).returncode


def run(engine: Engine) -> int:
    """Inside the namespace: start everything, ask everything, stop everything."""
    loopback_up()
    missing = {name for name, image in images.names().items() if not engine.has(images.full(image))}
    here = Composed(engine, frozenset(missing))
    broken = 0
    here.down()
    try:
        with timed("compose up"):
            print(f"  {', '.join(here.up())} (without: {', '.join(sorted(missing)) or 'nothing'})")
        for question in asked.OF_ALL:
            broken += not answered(question.__name__.replace("_", " "), lambda: question(here))  # noqa: B023
    except EngineFailed as failed:
        broken += 1
        print(f"FAILED {failed}")
    finally:
        here.down()
    print(
        f"{len(asked.OF_ALL)} questions, {broken} broken"
        if broken
        else f"{len(asked.OF_ALL)} of {len(asked.OF_ALL)} kept"
    )
    return bool(broken)


def answered(name: str, question: object) -> bool:
    try:
        print(f"  kept    {name}: {question()}", flush=True)  # type: ignore[operator]
    except (EngineFailed, OSError) as failed:
        print(f"  BROKEN  {name}: {failed}", flush=True)
        return False
    return True


def loopback_up() -> None:
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh", b"lo", UP))


@contextlib.contextmanager
def timed(what: str):  # type: ignore[no-untyped-def]
    began = time.monotonic()
    print(f"{what}:", flush=True)
    yield
    print(f"  {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
