"""What the documents say about the code is true of the code."""

import ast
import importlib.util
import re
import tomllib
from pathlib import Path

from faultline.cli.exit_codes import CHECK_FAILED, ERROR, USAGE
from faultline.cli.manage.audit import COULD_NOT_LOOK, VIOLATED
from faultline.job import JobState

ROOT = Path(__file__).parent.parent
FUNCTIONS = ROOT / "src/faultline/sql/functions"

# Functions that other functions stand on: no arrow, and no caller from outside.
HELPERS = {
    "report_unsettled", "be_durable", "check_server", "claimed_again", "clock_set_back", "crash_delay",
    "damage", "end_when_idle", "enqueue_keyed", "write_ledger", "fetch_later", "matching_job_ids",
    "give_back", "highest_id", "lock_job", "hold_keys", "lane_of", "lanes_with_jobs", "lapse_key", "lease_of",
    "requeue", "missing_ranges", "new_key_seed", "note_act", "note_refusals", "put_back", "queue_figures",
    "raise_dead", "raise_sequences", "raise_top", "readable", "record_server", "refuse", "server_mark",
    "shift_deadlines", "spared", "state_of", "step_over_rows", "table_figures", "take_key",
    "take_key_unless_other", "text_of", "timeline", "where_is", "why_refused", "within", "worker_key",
    "take_key_by_rule", "take_queued", "key_in_period", "checked_expiry", "refuse_full",
    "aged",
    "worker_seen",
    "admit_first", "admit_in_turn", "charge", "check_limit", "enqueue_each_limited", "filled_at",
    "is_operator", "moved_gate", "rests", "rest_gates",
    "first_held", "first_waiting", "gate_in", "gate_of", "gates_of", "has_limited_kind",
    "holds_gate", "known_in", "leave_gates", "limit_figures", "limit_of",
    "list_lane", "next_token", "place_at_gate",
    "slots_left", "tokens_left", "uses_limits", "waiting_gates",
    "write_schedule", "wanted_schedule", "next_period", "lock_schedule", "unfinished_jobs",
    "cancel_unlocked", "enqueue_occurrences", "schedule_troubles",
}  # fmt: skip


def test_each_arrow_of_the_lifecycle_names_an_existing_sql_file() -> None:
    page = (ROOT / "docs/lifecycle.md").read_text()
    named = re.findall(r"\| `(\w+)\.sql` \|", page)

    assert len(named) > 15
    for verb in named:
        (file,) = FUNCTIONS.glob(f"*/{verb}.sql")
        opening = file.read_text().split("create function")[0]
        assert "->" in opening, f"{verb}.sql does not open with its arrow"


def test_every_sql_function_is_on_the_lifecycle_page_or_a_helper() -> None:
    page = (ROOT / "docs/lifecycle.md").read_text()
    verbs = {file.stem for file in FUNCTIONS.glob("*/*.sql")}

    missing = {verb for verb in verbs - HELPERS if not re.search(rf"`{verb}(\.sql)?`", page)}

    assert not missing
    assert verbs >= HELPERS


def test_each_sql_file_defines_the_one_function_it_is_named_for() -> None:
    for file in FUNCTIONS.glob("*/*.sql"):
        made = re.findall(r"create function faultline\.(\w+)", file.read_text())

        assert made == [file.stem]


def test_each_promise_names_tests_that_exist() -> None:
    page = (ROOT / "docs/promises.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)`", page)

    assert len(set(named)) >= 11
    for path in named:
        assert (ROOT / path).exists(), path


def test_every_link_between_documents_leads_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} -> {target}"


def test_no_function_is_longer_than_a_screen() -> None:
    for file in (ROOT / "src").rglob("*.py"):
        if "/rpc/" in str(file):  # generated
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                assert lines <= 60, f"{file.relative_to(ROOT)}:{node.lineno} {node.name} has {lines} lines"


def test_the_exit_codes_that_the_guides_tell_are_those_of_the_commands() -> None:
    guide = (ROOT / "docs/guides/operate.md").read_text()
    audit = (ROOT / "docs/guides/audit.md").read_text()

    assert (
        f"{VIOLATED} says that a promise is broken in the rows, {COULD_NOT_LOOK} that it could not look"
        in guide
    )
    assert f"{VIOLATED} when something is violated, {USAGE} when it was not asked rightly" in audit
    assert f"0 when well, {ERROR} when not, {USAGE} when not asked rightly" in guide
    assert f"exits with {CHECK_FAILED} if anything is bad" in guide


def test_what_is_named_as_a_module_or_a_state_is_there() -> None:
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    for source in sources:
        text = source.read_text()
        for name in re.findall(r"\bfaultline\.([a-z]+)(?= |\.$|\"|`)", text):
            assert name != "testing", source
        for state in re.findall(r"--state (\w+)", text):
            assert state in set(JobState), f"{source}: --state {state}"


def test_lists_of_all_states_name_those_that_there_are() -> None:
    """The glossary, and what the SDKs of other languages are made from."""
    sources = [ROOT / "STYLE.md", *(ROOT / "proto").rglob("*.proto"), *(ROOT / "docs").rglob("*.md")]
    lists = {
        (source.name, told): re.findall(r"\w+", told.replace(" or ", " "))
        for source in sources
        for told in re.findall(r"`?queued`?, `?running`?,[\w`, ]*cancelled", source.read_text())
    }

    assert lists
    for where, states in lists.items():
        assert states == list(JobState), where


def test_what_the_pages_import_is_there() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        imports = re.findall(r"^from (faultline[\w.]*) import ([\w, ]+)", page.read_text(), re.MULTILINE)
        for home, names in imports:
            module = importlib.import_module(home)
            for name in names.split(", "):
                there = hasattr(module, name) or importlib.util.find_spec(f"{home}.{name}")
                assert there, f"{page.relative_to(ROOT)}: {name} is not in {home}"


def test_what_is_required_is_imported() -> None:
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    imported = {
        name
        for source in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"^\s*(?:from|import) (\w+)", source.read_text(), re.MULTILINE)
    }

    for line in required:
        name = re.match(r"[\w-]+", line)
        assert name is not None
        assert name[0].replace("-", "_") in imported, f"{line} is required and imported nowhere"
