"""The messages and services of the gRPC protocol: one page, read from `proto/`."""

import re
from pathlib import Path

from scripts.docs.markdown import fence, page

ROOT = Path(__file__).parents[2]
PROTO = ROOT / "proto/faultline/rpc/v1"

INTRODUCTION = "The messages of `faultline.rpc.v1`, over gRPC. [Protocol](protocol.md) says how to use it."


def pages() -> dict[str, str]:
    """The page by its path below `docs/`."""
    return {"reference/protocol-messages.md": messages()}


def messages() -> str:
    parts = []
    for file in sorted(PROTO.glob("*.proto")):
        text = file.read_text()
        comment = re.match(r"(?://.*\n)*", text)
        assert comment is not None
        parts += [f"## {file.name}", uncommented(comment[0]), *map(section, blocks(text))]
    return page("# Protocol messages", INTRODUCTION, *parts)


def blocks(text: str) -> list[str]:
    """Services, messages and enums of the outermost level, each with the comment before it."""
    return re.findall(r"^(?://.*\n)*(?:service|message|enum) \w+ \{(?:\}|(?:.*\n)*?\})", text, re.MULTILINE)


def section(block: str) -> str:
    opening = re.match(r"((?://.*\n)*)(\w+ (\w+))", block)
    assert opening is not None
    comment, heading, name = opening.groups()
    return page(
        f"### {heading} {{: #{name} }}", uncommented(comment), fence("protobuf", block[len(comment) :])
    )


def uncommented(text: str) -> str:
    return re.sub(r"^// ?", "", text, flags=re.MULTILINE)
