"""The Python API: a page for each module that public names come from, filled in by mkdocstrings."""

import ast
from importlib import import_module
from inspect import cleandoc
from pathlib import Path

import faultline
from scripts.docs.markdown import docstring, page, table

SOURCE = Path(faultline.__file__)

TITLES = {
    "app": "App",
    "client": "Tasks and handles",
    "config": "Worker settings",
    "errors": "Errors",
    "job": "Jobs",
    "outcome": "Outcomes",
    "retry": "Retries",
}


def pages() -> dict[str, str]:
    """Each page by its path below `docs/`."""
    homes = public_names()
    made = {f"reference/python/{module}.md": module_page(module, names) for module, names in homes.items()}
    return {"reference/python/index.md": index(homes), **made}


def public_names() -> dict[str, list[str]]:
    """The public names by their module, as a type checker is told of them."""
    return {
        node.module.removeprefix("faultline."): [alias.name for alias in node.names]
        for node in ast.walk(ast.parse(SOURCE.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("faultline.") and node.module
    }


def index(homes: dict[str, list[str]]) -> str:
    parts = []
    for module, names in homes.items():
        rows = [[f"[`{name}`]({module}.md#faultline.{name})", first_line(name)] for name in names]
        parts += [f"## [{title(module)}]({module}.md)", table(["Name", "What it is"], rows)]
    return page(
        "# Python API",
        "What `faultline` exports. These names are typed and kept stable; a module of the package may change "
        "without notice.",
        docstring(cleandoc(faultline.__doc__ or "")),
        *parts,
    )


def first_line(name: str) -> str:
    """The summary of a name's docstring; of a constant, the docstring of its type."""
    text = cleandoc(getattr(faultline, name).__doc__ or "")
    return text.partition("\n")[0]


def module_page(module: str, names: list[str]) -> str:
    introduction = cleandoc(import_module(f"faultline.{module}").__doc__ or "")
    return page(f"# {title(module)}", docstring(introduction), *(f"::: faultline.{name}" for name in names))


def title(module: str) -> str:
    return TITLES.get(module, module.replace("_", " ").capitalize())
