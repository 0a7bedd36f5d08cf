"""Run the checks: against a server at a URL, or against a worker that comes to us."""

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from typing import Final

import grpc

from faultline.errors import ConfigError, NotAuthenticated
from faultline.lab.conformance import server_checks, worker_checks
from faultline.lab.conformance.scripted_server import ScriptedServer
from faultline.lab.conformance.scripted_worker import ServerUnderTest
from faultline.lab.conformance.verdict import ConformanceVerdict
from faultline.rpc.v1 import worker_pb2_grpc
from faultline.server.config import ListenAddress

CONNECT_SECONDS: Final = 10.0
LEAVE_SECONDS: Final = 10.0

Told = Callable[[ConformanceVerdict], None]


async def check_server(
    target: str, key: str | None, told: Told, credentials: grpc.ChannelCredentials | None = None
) -> list[ConformanceVerdict]:
    """Check a server with a scripted worker, in a queue of its own; `told` hears each verdict as it comes."""
    options = [("grpc.max_send_message_length", -1)]
    channel = (
        grpc.aio.insecure_channel(target, options)
        if credentials is None
        else grpc.aio.secure_channel(target, credentials, options)
    )
    async with channel:
        await _connect(channel, target)
        await _let_in(ServerUnderTest(channel, key), target)
        verdicts = []
        for check in server_checks.CHECKS:  # each in a queue of its own
            verdicts.append(await check.judge(ServerUnderTest(channel, key)))
            told(verdicts[-1])
    return verdicts


async def _connect(channel: grpc.aio.Channel, target: str) -> None:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await channel.channel_ready()
    except TimeoutError:
        raise ConfigError(
            f"no gRPC server answers at {target}; check the URL, and whether it wants TLS"
        ) from None


async def _let_in(place: ServerUnderTest, target: str) -> None:
    """Refuse a key without any right: every check would fail, and say nothing about the server."""
    try:
        await place.info(1)
    except grpc.aio.AioRpcError as fault:
        if fault.code() == grpc.StatusCode.UNAUTHENTICATED:
            raise NotAuthenticated(
                f"the server at {target} refused the key, so nothing was checked: {fault.details()}. Give "
                "one with the scopes work, enqueue and read in FAULTLINE_API_KEY or by --key-file"
            ) from None


async def check_worker(
    address: str, command: Sequence[str], told: Told, ready: Callable[[str], None]
) -> list[ConformanceVerdict]:
    """Check a foreign worker: listen, start it where its command is known, and judge its messages."""
    where = ListenAddress.parse(address, 0)  # gRPC itself would take any port, modulo 65,536
    exam = ScriptedServer()
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0), ("grpc.keepalive_permit_without_calls", 1)])
    worker_pb2_grpc.add_WorkersServicer_to_server(exam, server)  # type: ignore[no-untyped-call]
    try:
        port = server.add_insecure_port(str(where))
    except RuntimeError as error:
        raise ConfigError(f"cannot listen on {where}: {error}; choose another port") from None
    await server.start()
    url = f"grpc://{ListenAddress(where.host, port)}"
    ready(url)
    worker = None
    verdicts = []
    try:
        worker = await _started(command, url)
        for check in worker_checks.CHECKS:
            verdicts.append(await check.judge(exam))
            told(verdicts[-1])
    finally:
        if worker is not None:
            await _ended(worker)
        await server.stop(0)
    return verdicts


async def _started(command: Sequence[str], url: str) -> Process | None:
    if not command:
        return None
    known = {"FAULTLINE_SERVER": url, "FAULTLINE_API_KEY": "flk_conformance", "FAULTLINE_QUEUES": "default"}
    try:
        return await asyncio.create_subprocess_exec(
            *command, env={**os.environ, **known}, start_new_session=True, stdout=2
        )
    except OSError as error:
        raise ConfigError(f"cannot start {command[0]!a}: {error.strerror}") from None


async def _ended(worker: Process) -> None:
    """Let it stop by itself, or end it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if worker.returncode is None:
            worker.send_signal(number)
            try:
                async with asyncio.timeout(LEAVE_SECONDS):
                    await worker.wait()
            except TimeoutError:
                continue
