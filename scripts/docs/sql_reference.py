"""The SQL functions and views: a page for each folder, read from the head of each file and the grants."""

import re
from pathlib import Path
from typing import NamedTuple

from scripts.docs.markdown import fence, page, table

ROOT = Path(__file__).parents[2]
SQL = ROOT / "src/faultline/sql"

TITLES = {
    "jobs": ("Jobs", "What producers and operators call."),
    "leases": ("Leases", "What workers call, from the claim to the end of an attempt."),
    "queues": ("Queues", "Pause and resume queues, and what is kept of their successes."),
    "limits": ("Limits", "How many jobs run at once, and how many start in a time."),
    "schedules": ("Schedules", "What is enqueued at which times, and the occurrences that were."),
    "maintenance": ("Maintenance", "What the watchdog calls, and what all functions stand on."),
    "access": ("Access", "API keys, roles, and who did what."),
    "reads": ("Reads", "What lists, figures and health checks are read from."),
}


class SqlObject(NamedTuple):
    """A function or a view, as its file begins."""

    name: str
    comment: str
    signature: str

    @property
    def summary(self) -> str:
        return self.comment.partition("\n")[0]


def pages() -> dict[str, str]:
    """Each page by its path below `docs/`."""
    folders = sorted(path.name for path in (SQL / "functions").iterdir() if path.is_dir())
    made = {f"reference/sql/{folder}.md": functions_page(folder) for folder in folders}
    return {"reference/sql/index.md": index(folders), **made, "reference/sql/views.md": views_page()}


def index(folders: list[str]) -> str:
    known = granted("function")
    parts = []
    for folder in sorted(folders, key=[*TITLES].index):
        rows = [
            [f"[`{each.name}`]({folder}.md#{each.name})", arrow(each.summary)]
            for each in objects(SQL / "functions" / folder)
            if each.name in known
        ]
        parts += [f"## [{title(folder)[0]}]({folder}.md)", table(["Function", "What it does"], rows)]
    views = [[f"[`{view.name}`](views.md#{view.name})", view.summary] for view in objects(SQL / "views")]
    return page(
        "# SQL",
        "Each change of a job's state is one function of the schema `faultline`. Any client may call "
        "them; the group roles that `faultline roles create` makes say which login may call what.",
        *parts,
        "## [Views](views.md)",
        table(["View", "What it shows"], views),
        "## Domains",
        "The types of arguments. Each constraint is the sentence that its error message shows.",
        *domains(),
    )


def functions_page(folder: str) -> str:
    name, about = title(folder)
    known = granted("function")
    shown = objects(SQL / "functions" / folder)
    public = [section(each, known[each.name]) for each in shown if each.name in known]
    internal = [section(each, []) for each in shown if each.name not in known]
    if internal:
        internal.insert(
            0, "## Internal {: #internal }\n\nOther functions stand on these. No group role may call them."
        )
    return page(f"# {name}", about, *public, *internal)


def title(folder: str) -> tuple[str, str]:
    return TITLES.get(folder, (folder.capitalize(), ""))


def section(each: SqlObject, duties: list[str]) -> str:
    callers = f"May be called by: {', '.join(duties)}." if duties else ""
    level = "##" if duties else "###"
    return page(
        f"{level} {each.name} {{: #{each.name} }}", prose(each.comment), fence("sql", each.signature), callers
    )


def views_page() -> str:
    known = granted("view")
    sections = [
        page(f"## {view.name} {{: #{view.name} }}", prose(view.comment), readers(known.get(view.name, [])))
        for view in objects(SQL / "views")
    ]
    return page("# Views", "What people and dashboards read. No view shows a claim.", *sections)


def readers(duties: list[str]) -> str:
    return f"May be read by: {', '.join(duties)}." if duties else ""


def prose(comment: str) -> str:
    """A comment as Markdown: its first line is a paragraph, and an indented block is an example in SQL."""
    first, _, rest = comment.partition("\n")
    return page(arrow(first), *map(_part, re.split(r"\n\n", rest.strip("\n"))))


def _part(text: str) -> str:
    return fence("sql", re.sub(r"^ +", "", text, flags=re.MULTILINE)) if text.startswith("  ") else text


def arrow(line: str) -> str:
    """The first line; the arrow that it draws on the state diagram stands out."""
    return re.sub(r"^([^:]+) -> ([^:]+): (.)", lambda told: f"**{told[1]} → {told[2]}:** {told[3]}", line)


def objects(folder: Path) -> list[SqlObject]:
    return [read(file) for file in sorted(folder.glob("*.sql"))]


def read(file: Path) -> SqlObject:
    """The comment at the top of a file, and what follows it up to the language of the body."""
    text = file.read_text()
    comment = re.match(r"(?:--.*\n)+", text)
    made = re.search(r"^create (?:function|view).*?(?=^language|^as\b|\bas$)", text, re.DOTALL | re.MULTILINE)
    assert comment is not None, file
    assert made is not None, file
    lines = [line.removeprefix("--").removeprefix(" ") for line in comment[0].splitlines()]
    return SqlObject(
        file.stem, "\n".join(lines).strip("\n"), made[0].removeprefix("create function ").strip()
    )


def granted(kind: str) -> dict[str, list[str]]:
    """The duties that may use each function, or each view."""
    listed = re.findall(
        r"\('\{([\w,]+)\}'(?:::text\[\])?, '(\w+)',\s*'\{([\w,]+)\}'",
        (SQL / "functions/access/role_grants.sql").read_text(),
    )
    found: dict[str, list[str]] = {}
    for duties, of, names in listed:
        for name in names.split(",") if of == kind else ():
            found.setdefault(name, []).extend(duties.split(","))
    return found


def domains() -> list[str]:
    """Every domain of the migrations, as it was made."""
    text = "\n".join(file.read_text() for file in sorted((SQL / "migrations").glob("*.sql")))
    return [
        page(f"### {name} {{: #domain-{name} }}", fence("sql", body))
        for body, name in re.findall(
            r"^(create domain faultline\.(\w+) .*?;)$", text, re.DOTALL | re.MULTILINE
        )
    ]
