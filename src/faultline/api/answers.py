"""The sending side of one request: adds what every answer carries, and knows whether it has begun."""

from typing import Any, Final

from faultline.api.asked import Asked

EVERY_ANSWER: Final = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


class Answer:
    """Wraps an ASGI `send`."""

    __slots__ = ("_asked", "_send", "body_was_read", "sent", "started")

    def __init__(self, send: Any, asked: Asked) -> None:
        self._send = send
        self._asked = asked
        self.started = False
        self.body_was_read = False
        self.sent = 0
        """Bytes of its body so far."""

    async def send(self, message: Any) -> None:
        """For an ASGI app behind the gate."""
        if message["type"] == "http.response.start":
            self.started = True
            message["headers"] = self._with_ours(list(message.get("headers", ())))
        else:
            self.sent += len(message.get("body", b""))
        await self._send(message)

    async def whole(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """All of it at once."""
        await self.begin(status, headers, b"")
        self.sent += len(body)
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def begin(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """The head, and the first part of the body."""
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
        return [*headers, *EVERY_ANSWER, (b"x-request-id", self._asked.id.encode())]
