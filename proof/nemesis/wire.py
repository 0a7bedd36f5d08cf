"""Just enough of PostgreSQL's protocol to tell which statement is asked for, and how it was answered."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

STATEMENT_BYTES_MAX = 400


@dataclass
class Frames:
    """Cuts a stream of bytes into the messages it is made of; what is incomplete waits for its rest."""

    greets: bool
    """Whether the stream opens with messages that have a length and no letter, as a client's does."""
    _rest: bytes = b""

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Each message that is whole by now: its letter and its content."""
        self._rest += data
        while True:
            head = 4 if self.greets else 5
            if len(self._rest) < head:
                return
            (length,) = struct.unpack("!i", self._rest[head - 4 : head])
            end = head - 4 + length
            if length < 4 or len(self._rest) < end:
                return
            letter, content = (b"", self._rest[4:end]) if self.greets else (self._rest[:1], self._rest[5:end])
            self._rest = self._rest[end:]
            if self.greets:
                # SSLRequest and its like have the major number 1234, and another greeting follows.
                self.greets = content[:2] == struct.pack("!h", 1234)
            yield letter, content


@dataclass
class Questions:
    """What a client asks: the text of each statement, prepared ones by what they were prepared from."""

    _frames: Frames = field(default_factory=lambda: Frames(greets=True))
    _prepared: dict[bytes, bytes] = field(default_factory=dict)

    def heard(self, data: bytes) -> list[str]:
        """The statements that these bytes ask the server to carry out."""
        return [
            statement[:STATEMENT_BYTES_MAX].decode(errors="replace")
            for letter, content in self._frames.feed(data)
            if (statement := self._statement(letter, content)) is not None
        ]

    def _statement(self, letter: bytes, content: bytes) -> bytes | None:
        match letter:
            case b"Q":
                return content.rstrip(b"\0")
            case b"P":
                name, text = content.split(b"\0")[:2]
                self._prepared[name] = text
            case b"B":
                return self._prepared.get(content.split(b"\0")[1], b"")
        return None


@dataclass
class Answers:
    """How the server answers: done, refused, or not yet."""

    _frames: Frames = field(default_factory=lambda: Frames(greets=False))
    refused: bool = False

    def ended(self, data: bytes) -> bool:
        """Whether a reply is complete with these bytes (ReadyForQuery); `refused` tells how it went."""
        done = False
        for letter, _ in self._frames.feed(data):
            if letter == b"E":
                self.refused = True
            done = done or letter == b"Z"
        return done
