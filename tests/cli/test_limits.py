"""`faultline limits`: made, seen, changed and tied."""

import pytest

from faultline.store import calls
from tests.support import claim_many, new_job


@pytest.fixture
def waiting(on, store):
    """A limit of one job a key, one that holds its slot and two that wait."""
    assert on("limits", "set", "api", "--per-key", 1, "--rate", "100/min").exit_code == 0
    assert on("limits", "tie", "test_task", "api", "--key", "tenant").exit_code == 0
    jobs = store.run(calls.enqueue_many([new_job(args='{"tenant": "a"}') for _ in range(3)]))
    claim_many(store)
    return jobs


def test_a_limit_is_shown_with_its_keys(on, ask, waiting):
    assert on("limits", "list").stdout.splitlines()[1].split() == [
        "api",
        "1",
        "100/min",
        "1",
        "2",
        "test_task",
    ]
    shown = on("limits", "show", "api").stdout
    assert "limit api  1 per key, 100/min, 2 at once, 1 may start now" in shown
    assert "1 job hold a slot, 2 jobs wait" in shown
    assert ask("limits", "show", "api")["keys"][0]["key"] == "a"


def test_a_job_says_what_it_waits_for(on, ask, waiting):
    shown = on("jobs", "show", waiting[2]).stdout

    assert "limit api: 1 of 1 of its key run or are next, 1 job of its key comes first" in shown
    assert ask("jobs", "show", waiting[2])["waits_for"]["limit"] == "api"
    assert "waits for" not in on("jobs", "show", waiting[0]).stdout


def test_a_bound_is_changed_and_the_others_stay(on, ask, waiting):
    assert ask("limits", "set", "api", "--total", 5)["per_key"] == 1
    limit = ask("limits", "set", "api", "--per-key", "none", "--rate", "none")

    assert (limit["per_key"], limit["total"], limit["rate"], limit["burst"]) == (None, 5, None, None)
    assert "is set: 5 in total" in on("limits", "set", "api").stdout


def test_a_task_is_freed(on, store, waiting):
    assert "task test_task has no limit; 3 jobs moved" in on("limits", "free", "test_task").stdout

    store.run(calls.promote())
    assert len(claim_many(store)) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", "api", "--total", "0"), "'0' is not a whole number from 1 to 1,000,000, or none"),
        (("set", "api", "--rate", "much"), "a rate is a number in a time"),
        (("set", "api", "--total", "5", "--on-retry", "block"), "for per_key=1"),
        (("set", "api", "--total", "5", "--parent", "nothing"), "there is no limit 'nothing'"),
        (("set", "a b", "--total", "5"), "limit"),
        (("show", "apy"), "no limit is called apy"),
        (("tie", "charge", "apy"), "no limit is called apy"),
        (("sync", "nothing_here:app"), "nothing_here"),
    ],
)
def test_what_makes_no_sense_is_refused(on, words, said):
    result = on("limits", *words)

    assert result.exit_code != 0
    assert said in result.stderr


def test_the_limits_of_an_app_are_told(on, ask, tmp_path):
    (tmp_path / "limited_app.py").write_text(
        "from faultline import Faultline, Limit\n"
        "app = Faultline()\n"
        "@app.task(limit=Limit(total=3))\n"
        "def charge() -> None: ...\n"
    )

    assert "the limits of the app are set; 0 jobs moved" in on("limits", "sync", "limited_app:app").stdout
    assert ask("limits", "list")[0]["tasks"] == ["charge"]
