"""What a flood of refused calls took is given back: it is free, and the C library would keep it."""

import asyncio
import ctypes
import platform
from pathlib import Path

import pytest

from faultline.server.grpc import memory
from tests.grpc.conftest import serving

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps it so")

MIB = 1_048_576
BLOCK = 65_536
"""Below the size from which glibc asks the system for each block by itself."""


def resident():
    """How much memory of this process is in the machine, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def free_much():
    """Free 64 MiB in blocks with smaller live ones between them, as many connections at once leave it.

    Returns what was in the machine before the first was freed, and a function that frees the others.
    """
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    large, small = [], []
    for _ in range(64 * MIB // BLOCK):
        large.append(libc.malloc(BLOCK))
        small.append(libc.malloc(4096))
        ctypes.memset(large[-1], 1, BLOCK)
    before = resident()
    for block in large:
        libc.free(block)
    return before, lambda: [libc.free(block) for block in small]


def test_a_server_gives_freed_memory_back_to_the_system(database, monkeypatch):
    monkeypatch.setattr(memory, "EVERY_SECONDS", 0.1)

    async def served():
        async with serving(database):
            before, tidy = free_much()
            async with asyncio.timeout(60):
                while before - resident() < 32 * MIB:  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
            tidy()

    asyncio.run(served())
