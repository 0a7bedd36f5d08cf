"""The process beside an embedded server: starts it, counts its holders, and stops it after the last one.

A holder is an open socket and nothing more. The kernel closes it at the end of its process, in every case,
so the count is always right and no process id has to be trusted. Run as a script, with the standard library
alone: it starts fast, stays small, and imports nothing of its callers.
"""

import ctypes
import fcntl
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FAST, IMMEDIATE, KILL = signal.SIGINT, signal.SIGQUIT, signal.SIGKILL

# The ways of stopping, each harder than the last, and the time for each. WAL makes all of them safe.
PATIENCE_SECONDS = {FAST: 20.0, IMMEDIATE: 8.0, KILL: 5.0}
POLL_SECONDS = 0.005
LOG_TAIL_BYTES = 2000
MESSAGE_BYTES_MAX = 4096

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


class ServerSupervisor:
    """One server, its holders, and their connections."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.pid: int | None = None
        self.exit_code: int | None = None
        self.halted = self.fell = self.told_to_stop = False
        self.holders: set[socket.socket] = set()
        self.last: socket.socket | None = None
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"{order['socket_folder']}/control")
        self.listener.listen(64)
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ, self.accept)
        self._watch_signals()

    def _watch_signals(self) -> None:
        self.wake, alarm = socket.socketpair()
        self.wake.setblocking(False)
        alarm.setblocking(False)
        signal.set_wakeup_fd(alarm.detach(), warn_on_full_buffer=False)
        self.selector.register(self.wake, selectors.EVENT_READ, self.on_signal)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)

    def run(self) -> None:
        self.start()
        self.hold(socket.socket(fileno=self.order["hold"]))
        while self.holders and not (self.fell or self.told_to_stop):
            for key, _ in self.selector.select():
                key.data(key.fileobj)
            if not self.holders:
                self.accept(self.listener)  # a new holder may have connected while the last one left
        self.finish()

    # holders

    def accept(self, listener: socket.socket) -> None:
        try:
            guest, _ = listener.accept()
        except BlockingIOError:
            return
        self.hold(guest)

    def hold(self, holder: socket.socket) -> None:
        holder.setblocking(True)
        self.holders.add(holder)
        self.selector.register(holder, selectors.EVENT_READ, self.receive)
        self.send(holder, say="hello", nonce=self.order["nonce"], pid=self.pid)

    def receive(self, holder: socket.socket) -> None:
        try:
            message = holder.recv(MESSAGE_BYTES_MAX)
        except ConnectionError:
            message = b""
        wish: dict[str, Any] = json.loads(message) if message else {"ask": "leave"}
        match wish["ask"]:
            case "leave":
                self.let_go(holder)
            case "pid":
                self.send(holder, say="pid", pid=self.pid)
            case "halt":
                self.halted = True
                self.end(signal.Signals(wish["signal"]))
                self.send(holder, say="halted")
            case "start":
                if self.halted:
                    self.start()
                self.send(holder, say="started", pid=self.pid)

    def let_go(self, holder: socket.socket) -> None:
        """Forget a holder. The last one's socket is closed only when everything is gone."""
        if holder not in self.holders:
            return
        self.holders.remove(holder)
        self.selector.unregister(holder)
        if self.holders:
            holder.close()
        else:
            self.last = holder

    def send(self, holder: socket.socket, **message: Any) -> None:
        try:
            holder.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            self.let_go(holder)

    # the server

    def start(self) -> None:
        order = self.order
        with Path(order["log"]).open("ab") as log:
            server = subprocess.Popen(
                order["command"],
                cwd="/",
                env=order["environment"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[order["life"], *order["handles"]],
                preexec_fn=die_with(os.getpid()),
                **order["account"],
            )
        server.returncode = 0  # this process collects it, together with its remaining children
        self.pid, self.exit_code, self.halted = server.pid, None, False

    def on_signal(self, wake: socket.socket) -> None:
        heard = wake.recv(MESSAGE_BYTES_MAX)
        if signal.SIGTERM in heard or signal.SIGINT in heard:
            self.told_to_stop = True
        self.collect()
        self.fell = self.pid is None and not self.halted

    def collect(self) -> bool:
        """Reap ended children; true when none is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self.pid:
                self.pid, self.exit_code = None, os.waitstatus_to_exitcode(status)

    def end(self, how: signal.Signals) -> None:
        """Stop the server, and wait for the last of its processes."""
        ways = list(PATIENCE_SECONDS)
        for way in ways[ways.index(how) :]:
            self.collect()
            if self.pid is not None:
                os.kill(self.pid, way)
            until = time.monotonic() + PATIENCE_SECONDS[way]
            while time.monotonic() < until:
                if self.collect():
                    return
                time.sleep(POLL_SECONDS)

    # the end

    def finish(self) -> None:
        order = self.order
        self.listener.close()
        if self.fell:
            for holder in list(self.holders):
                self.send(holder, say="gone", code=self.exit_code, log=self.log_tail())
        self.end(FAST if order["keep"] else IMMEDIATE)
        shutil.rmtree(order["socket_folder"], ignore_errors=True)
        self.drop_card(Path(order["folder"]) / "server.json")
        if not order["keep"] and not self.holders:
            delete(Path(order["folder"]), order["life"])

    def drop_card(self, card: Path) -> None:
        """Delete our card, and leave a successor's."""
        try:
            if json.loads(card.read_text())["nonce"] == self.order["nonce"]:
                card.unlink()
        except (OSError, ValueError):
            pass

    def log_tail(self) -> str:
        try:
            return Path(self.order["log"]).read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")
        except OSError:
            return ""


def delete(folder: Path, life: int) -> None:
    """Delete the folder, unless the next server starts in it, or it is another of the same name."""
    try:
        with (folder / "lock").open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(life), (folder / "alive").stat()):
                shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return


def die_with(parent: int) -> Any:
    """Have a new child stop by itself when this process is killed. Linux can; others have no such call."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None:
        return None

    def in_the_child() -> None:
        prctl(PR_SET_PDEATHSIG, FAST)
        if os.getppid() != parent:
            os._exit(1)

    return in_the_child


def become_an_orphan() -> None:
    """Leave the caller's session and children: the caller does not wait for us, and we outlive it."""
    if os.fork():
        os._exit(0)
    os.umask(0o077)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    if prctl := getattr(ctypes.CDLL(None), "prctl", None):
        prctl(PR_SET_CHILD_SUBREAPER, 1)  # the backends of a killed server become our children


if __name__ == "__main__":
    received = json.load(sys.stdin)
    become_an_orphan()
    ServerSupervisor(received).run()
