"""Responder: the sending side of one request: adds the common headers, and knows whether it has begun."""

from typing import Any, Final

from faultline.server.http.guard.request_head import RequestHead

EVERY_ANSWER: Final = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


class Responder:
    """Wraps an ASGI `send`."""

    __slots__ = ("_head", "_send", "body_was_read", "sent", "started")

    def __init__(self, send: Any, head: RequestHead) -> None:
        self._send = send
        self._head = head
        self.started = False
        self.body_was_read = False
        self.sent = 0
        """The bytes of the body so far."""

    async def send(self, message: Any) -> None:
        """For an ASGI app behind RequestGuard."""
        if message["type"] == "http.response.start":
            self.started = True
            message["headers"] = self._with_ours(list(message.get("headers", ())))
        else:
            self.sent += len(message.get("body", b""))
        await self._send(message)

    async def whole(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """Send the whole answer."""
        await self.begin(status, headers, b"")
        self.sent += len(body)
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def begin(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """Send the head, and the first part of the body."""
        self.started = True
        await self._send(
            {"type": "http.response.start", "status": status, "headers": self._with_ours(headers)}
        )
        if body:
            self.sent += len(body)
            await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def _with_ours(self, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        return [*headers, *EVERY_ANSWER, (b"x-request-id", self._head.id.encode())]
