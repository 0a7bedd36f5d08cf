"""The proxy of a storm tells which statement is asked for, and can lose just its reply."""

import asyncio
import struct

import psycopg
import pytest
from psycopg import AsyncConnection

from proof.nemesis.proxy import Link, Trap
from proof.nemesis.wire import Answers, Questions


def message(letter: bytes, content: bytes) -> bytes:
    return letter + struct.pack("!i", len(content) + 4) + content


GREETING = message(b"", struct.pack("!i", 196608) + b"user\0me\0\0")


def test_a_statement_is_recognised_whether_it_is_sent_whole_in_pieces_or_prepared():
    questions = Questions()
    text = (
        GREETING
        + message(b"Q", b"COMMIT\0")
        + message(b"P", b"s1\0select 1\0\0\0")
        + message(b"B", b"\0s1\0rest")
    )

    heard = [
        statement for place in range(len(text)) for statement in questions.heard(text[place : place + 1])
    ]

    assert heard == ["COMMIT", "select 1"]


def test_an_answer_is_over_when_the_server_is_ready_and_tells_whether_it_refused():
    done, refused = Answers(), Answers()

    assert done.ended(message(b"C", b"COMMIT\0")) is False
    assert done.ended(message(b"Z", b"I")) is True
    assert refused.ended(message(b"E", b"no\0") + message(b"Z", b"I")) is True
    assert (done.refused, refused.refused) == (False, True)


def test_a_commit_is_carried_out_and_its_reply_is_lost(database):
    async def play() -> Trap:
        link = Link("line", lambda: database)
        await link.start()
        trap = Trap(("COMMIT",), "after")
        link.traps.append(trap)
        conn = await AsyncConnection.connect(link.dsn)
        await conn.execute("create table was_here ()")
        with pytest.raises(psycopg.OperationalError):
            await conn.commit()
        await conn.close()
        await link.stop()
        return trap

    trap = asyncio.run(play())

    assert (trap.carried_out, trap.line) == (True, "line")
    with psycopg.connect(database) as conn:
        assert conn.execute("select to_regclass('was_here') is not null").fetchone() == (True,)
