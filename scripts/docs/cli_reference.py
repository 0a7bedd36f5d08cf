"""The command line: a page for each group of commands, read from click as `--help` reads it."""

import re
from collections.abc import Iterator

import click

from faultline.cli.options import Everywhere, everywhere
from faultline.cli.root import COMMANDS, EXIT_CODES, HOMES, root
from scripts.docs.markdown import fence, page, table

GROUPS = {
    "serve": ("Run", "Workers, the server, and a database for development."),
    "jobs": ("Jobs", "Enqueue jobs, look at them, and act on them."),
    "manage": ("Manage", "The schema, queues, keys, roles and the state of the whole."),
    "lab": ("Try", "The demo, drills, benchmarks and the conformance test."),
}


def pages() -> dict[str, str]:
    """Each page by its path below `docs/`."""
    made = {f"reference/cli/{group}.md": group_page(group) for group in groups()}
    return {"reference/cli/index.md": index(), **made}


def groups() -> dict[str, list[str]]:
    """The commands of each page, in the order of `faultline --help`."""
    found: dict[str, list[str]] = {name: [] for name in GROUPS}
    for command in COMMANDS:
        found.setdefault(HOMES.get(command, "jobs"), []).append(command)
    return found


def index() -> str:
    rows = [
        [f"[`{context.command_path}`]({group}.md#{anchor(context)})", context.command.get_short_help_str(200)]
        for group, names in groups().items()
        for name in names
        for context in commands_below(name)
        if not isinstance(context.command, click.Group)
    ]
    return page(
        "# CliCommand line",
        "`faultline COMMAND --help` prints the same.",
        table(["CliCommand", "What it does"], rows),
        "## Options of every command",
        options([param for param in everywhere() if isinstance(param, click.Option)], root_context()),
        "## Exit codes",
        EXIT_CODES.removeprefix("Exit codes: "),
    )


def group_page(group: str) -> str:
    title, about = GROUPS.get(group, (group.capitalize(), ""))
    sections = [section(context) for name in groups()[group] for context in commands_below(name)]
    return page(f"# {title}", about, *sections)


def root_context() -> click.Context:
    return click.Context(root, info_name="faultline")


def commands_below(name: str) -> Iterator[click.Context]:
    """A command, and the commands below it if it is a group."""
    above = root_context()
    command = root.get_command(above, name)
    assert command is not None
    yield from _walk(command, click.Context(command, info_name=name, parent=above))


def _walk(command: click.Command, context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from _walk(below, click.Context(below, info_name=name, parent=context))


def section(context: click.Context) -> str:
    command = context.command
    level = "#" * len(context.command_path.split())
    own = [
        param
        for param in command.params
        if isinstance(param, click.Option) and not isinstance(param, Everywhere)
    ]
    usage = f"{context.command_path} {' '.join(command.collect_usage_pieces(context))}"
    return page(
        f"{level} {context.command_path} {{ #{anchor(context)} }}",
        fence("text", usage) if not isinstance(command, click.Group) else "",
        help_text(command),
        options(own, context),
    )


def anchor(context: click.Context) -> str:
    return context.command_path.replace(" ", "-")


def help_text(command: click.Command) -> str:
    """The help; a paragraph that is a command line is shown as one."""
    paragraphs = re.split(r"\n\s*\n", re.sub(r"^ +", "", command.help or "", flags=re.MULTILINE))
    return page(
        *(fence("sh", text) if text.startswith("faultline ") else text.strip() for text in paragraphs)
    )


def options(params: list[click.Option], context: click.Context) -> str:
    """A table of options as their help records name them."""
    records = [(param, param.get_help_record(context)) for param in params if not param.hidden]
    return table(["Option", "Meaning"], [[f"`{told[0]}`", escape(told[1])] for _, told in records if told])


def escape(text: str) -> str:
    """Text of a help line: click's brackets are no link, and an asterisk is an asterisk."""
    return re.sub(r"([\[\]*<])", r"\\\1", text)
