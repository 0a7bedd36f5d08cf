"""Which login runs which command: the table in the guide to operating is true, cell by cell."""

import re
import secrets
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

ROOT = Path(__file__).parents[2]
OPERATE = (ROOT / "docs/guides/operate.md").read_text()
AUDIT = (ROOT / "docs/guides/audit.md").read_text()

MEANT = {"ID": "1", "NAME": "default", "TASK": "greet"}
"""What stands in the table for a word of the reader's own."""


def table():
    """The table's rows: the commands of one, and for each group whether its cell says yes."""
    section = OPERATE.split("## Which login runs which command")[1].split("\n## ")[0]
    head, _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("|")
    )
    groups = [tuple(re.findall(r"`faultline_(\w+)`", cell)) for cell in head[1:]]
    for commands, *cells in rows:
        assert set(cells) <= {"yes", "-"}, cells
        for words in re.findall(r"`faultline (.+?)`", commands):
            yield words, dict(zip(groups, (cell == "yes" for cell in cells), strict=True))


@pytest.fixture(scope="module")
def database(shared):
    """Roles come and go, so one database serves all."""
    return shared


@pytest.fixture(scope="module")
def logins(shared):
    """A login for each column of the table, and for the auditor of its page: their DSNs."""
    prefix = f"l{secrets.token_hex(5)}_"
    columns = [*next(table())[1], ("auditor",)]
    with psycopg.connect(shared, autocommit=True) as conn:
        conn.execute("select faultline.make_roles(%s, own => true)", [prefix])
        conn.execute("select faultline.enqueue('greet', '{}')")
        dsns = {}
        for groups in columns:
            login = f"{prefix}{'_'.join(groups)}_login"
            conn.execute(f"create role {login} login")
            dsns[groups] = make_conninfo(shared, user=login)
            for group in groups if groups != ("auditor",) else ():
                conn.execute(f"grant {prefix}{group} to {login}")
        for statement in re.findall(r"^grant .*?;$", AUDIT, re.MULTILINE):
            conn.execute(statement.replace("auditor", f"{prefix}auditor_login"))
        yield dsns
        made = conn.execute("select rolname from pg_roles where starts_with(rolname, %s)", [prefix])
        names = [name for (name,) in made.fetchall()]
        for name in names:
            conn.execute(f"reassign owned by {name} to current_user")
            conn.execute(f"drop owned by {name}")
        for name in names:
            conn.execute(f"drop role {name}")


@pytest.mark.parametrize(("words", "told"), [pytest.param(*row, id=row[0]) for row in table()])
def test_each_login_may_run_what_the_table_says_and_nothing_else(run, logins, words, told):
    typed = [MEANT.get(word, word.strip("'")) for word in words.split()]
    if typed[:2] in (["jobs", "cancel"], ["jobs", "retry"], ["jobs", "replay"]):
        typed.append("--yes")

    denied = {
        groups: "permission denied" in run(*typed, "--dsn", logins[groups], "--quiet").output
        for groups in told
    }

    assert {groups: not refused for groups, refused in denied.items()} == told


def test_the_auditor_of_the_page_can_look(run, logins):
    told = run("audit", "--dsn", logins["auditor",])

    assert told.exit_code in (0, 1), told.output
    assert "permission denied" not in told.output
