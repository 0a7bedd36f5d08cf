"""The references of the site are complete: what is public stands in them, by its name."""

import json
import re

import click

import faultline
from faultline.cli.root import COMMANDS
from scripts.docs import cli_reference, http_reference, protocol_reference, python_reference, sql_reference
from scripts.docs.blocks import ROOT, language
from scripts.docs.markdown import docstring, fence, table

FUNCTIONS = ROOT / "src/faultline/sql/functions"


def test_every_public_name_of_python_is_filled_in_once():
    asked = re.findall(r"^::: faultline\.(\w+)$", "".join(python_reference.pages().values()), re.MULTILINE)

    assert sorted(asked) == sorted(set(faultline.__all__) - {"__version__"})


def test_every_command_is_there_with_its_options():
    text = "".join(cli_reference.pages().values())
    commands = [context for name in COMMANDS for context in cli_reference.commands_below(name)]

    assert len(commands) > 40
    for context in commands:
        assert f"{{ #{context.command_path.replace(' ', '-')} }}" in text, context.command_path
        for param in context.command.params:
            if isinstance(param, click.Option) and not param.hidden:
                assert param.opts[-1] in text, (context.command_path, param.opts)


def test_every_sql_function_is_there_with_what_its_file_says():
    pages = sql_reference.pages()

    for file in FUNCTIONS.glob("*/*.sql"):
        page = pages[f"reference/sql/{file.parent.name}.md"]
        assert f"{{: #{file.stem} }}" in page, file
        assert f"faultline.{file.stem}(" in page, file


def test_a_function_names_the_duties_that_may_call_it():
    claim = re.search(r"## claim .*?(?=\n## )", sql_reference.functions_page("leases"), re.DOTALL)

    assert claim is not None
    assert "**queued → running:** take due jobs" in claim[0]
    assert "May be called by: worker, server." in claim[0]


def test_a_function_that_no_duty_may_call_is_shown_as_internal():
    public, _, internal = sql_reference.functions_page("leases").partition("## Internal")

    assert "## complete " in public
    assert "### put_back " in internal


def test_every_operation_and_schema_of_http_is_there():
    document = json.loads((ROOT / "docs/openapi.json").read_text())
    (page,) = http_reference.pages().values()

    for path, methods in document["paths"].items():
        for method in methods:
            assert f"### {method.upper()} {path} " in page
    for schema in document["components"]["schemas"]:
        assert f"### {schema} " in page


def test_every_service_and_message_of_the_protocol_is_there():
    (page,) = protocol_reference.pages().values()
    sources = "".join(file.read_text() for file in protocol_reference.PROTO.glob("*.proto"))
    named = re.findall(r"^(?:service|message|enum) \w+", sources, re.MULTILINE)

    assert len(named) > 40
    assert [name for name in named if f"### {name} " not in page] == []


def test_docstrings_are_shown_with_their_sessions_and_lines_as_code():
    told = docstring("One line.\n\n>>> 1 + 1\n2\n\napp.get(7).state\n\n    handle.id  # a block\n\nThe end.")

    assert told.split("\n\n") == [
        "One line.", "```pycon\n>>> 1 + 1\n2\n```", "```python\napp.get(7).state\n```",
        "```python\nhandle.id  # a block\n```", "The end.\n",
    ]  # fmt: skip


def test_bars_part_no_cells_and_backticks_end_no_block():
    assert table(["a"], [["x | y"], ["`x | y`"]]).splitlines()[2:] == ["| x \\| y |", "| `x | y` |"]
    assert table(["a"], []) == ""
    assert fence("text", "```").startswith("````text\n")


def test_a_block_without_a_label_is_taken_for_what_its_first_line_is():
    assert language("make demo   # see it\n") == "sh"
    assert language("# where the database is\npip install x\n") == "sh"
    assert language("$ faultline acts\nwhen  who\n") == "console"
    assert language("job 41  thumbnail  dead\n") == "text"
