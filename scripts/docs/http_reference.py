"""The HTTP API: one page, read from the OpenAPI document that is checked in."""

import json
import re
from pathlib import Path
from typing import Any

from scripts.docs.markdown import docstring, page, table

ROOT = Path(__file__).parents[2]
TITLES = {
    "jobs": "Jobs",
    "operate": "Act on jobs",
    "queues": "Queues",
    "looking": "Inspect",
    "drills": "Drills",
    "health": "Health",
}
"""The headings of the tags, in the order in which they are read."""
KEYWORDS = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "pattern",
)


def pages() -> dict[str, str]:
    """The page by its path below `docs/`."""
    return {"reference/http.md": whole(json.loads((ROOT / "docs/openapi.json").read_text()))}


def whole(document: dict[str, Any]) -> str:
    by_tag: dict[str, list[str]] = {tag: [] for tag in TITLES}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            by_tag.setdefault(operation.get("tags", ["other"])[0], []).append(
                section(method, path, operation)
            )
    sections = [part for tag, made in by_tag.items() for part in (f"## {tag_title(tag)}", *made)]
    schemas = [schema_section(name, schema) for name, schema in document["components"]["schemas"].items()]
    return page(
        "# HTTP API",
        document["info"]["description"],
        "This page is made from the [OpenAPI document](../openapi.json). "
        "[Run the server](../guides/server.md) has the calls that are used most.",
        *sections,
        "## Schemas",
        *schemas,
    )


def tag_title(tag: str) -> str:
    return TITLES.get(tag, tag.capitalize())


def section(method: str, path: str, operation: dict[str, Any]) -> str:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    parameters = [
        [f"`{given['name']}`", given["in"], kind(given["schema"]), given.get("description", "")]
        for given in operation.get("parameters", [])
    ]
    answers = [
        [status(code), meaning(answer), content(answer)] for code, answer in operation["responses"].items()
    ]
    anchor = re.sub(r"[^a-z0-9]+", "-", f"{method}{path}".lower()).strip("-")
    return page(
        f"### {method.upper()} {path} {{: #{anchor} }}",
        docstring(operation["description"]),
        table(["Parameter", "In", "Type", "Meaning"], parameters),
        f"Body: {kind(body)}." if body else "",
        table(["Status", "Meaning", "Body"], answers),
    )


def status(code: str) -> str:
    return "4xx, 5xx" if code == "default" else code


def meaning(answer: dict[str, Any]) -> str:
    return str(answer["description"]).replace("Successful Response", "Done.")


def content(answer: dict[str, Any]) -> str:
    told = [f"{kind(given.get('schema', {}))}" for given in answer.get("content", {}).values()]
    return ", ".join(told) or "none"


def schema_section(name: str, schema: dict[str, Any]) -> str:
    required = set(schema.get("required", ()))
    fields = [
        [
            f"`{field}`",
            kind(given) + (", required" if field in required else ""),
            given.get("description", ""),
        ]
        for field, given in schema.get("properties", {}).items()
    ]
    values = f"One of {', '.join(f'`{value}`' for value in schema['enum'])}." if "enum" in schema else ""
    heading = f"### {name} {{: #schema-{name.lower()} }}"
    return page(
        heading, docstring(schema.get("description", "")), values, table(["Field", "Type", "Meaning"], fields)
    )


def kind(schema: dict[str, Any]) -> str:
    """A type in a few words: its bounds too, and a link to a schema of its own."""
    match schema:
        case {"$ref": ref}:
            name = ref.rpartition("/")[2]
            return f"[{name}](#schema-{name.lower()})"
        case {"anyOf": choices} | {"oneOf": choices}:
            told = " or ".join(kind(choice) for choice in choices)
        case {"enum": values}:
            told = ", ".join(f"`{json.dumps(value)}`" for value in values)
        case {"type": "array"}:
            told = f"list of {kind(schema.get('items', {}))}"
        case _:
            told = str(schema.get("format") or schema.get("type") or "any JSON")
    return told + bounds(schema)


def bounds(schema: dict[str, Any]) -> str:
    told = [f"{_words(word)} `{schema[word]}`" for word in KEYWORDS if word in schema]
    if schema.get("default") is not None:
        told.append(f"default `{json.dumps(schema['default'])}`")
    return f" ({', '.join(told)})" if told else ""


def _words(keyword: str) -> str:
    return re.sub(r"([A-Z])", lambda found: f" {found[1].lower()}", keyword)
