"""I7: a task's name is looked up in the app's registry and nowhere else; args are JSON and nothing else."""

import base64
import os
import pickle
import sys

import psycopg
import pytest

from faultline import errors
from faultline.store import calls
from tests.bad_input.entry_points import words


class Touch:
    """What a pickle runs when it is unpickled."""

    def __reduce__(self):
        return os.putenv, ("FAULTLINE_WAS_UNPICKLED", "1")


@pytest.mark.parametrize(
    "name", ["os.system", "builtins.eval", "subprocess.run", "tests.support.enqueue", "antigravity"]
)
def test_i7_an_importable_name_is_an_unknown_task(app, name):
    """The names are well formed, so the database takes them: it is the worker's registry that refuses."""
    loaded = set(sys.modules)

    with pytest.raises(errors.UnknownTask, match="Import the module that defines the task") as refusal:
        app.registry.find(name)

    assert name in str(refusal.value)
    assert set(sys.modules) == loaded


@pytest.mark.parametrize(
    "name", ["os:system", "os.system()", "../handler", "a b", "__import__('os')", "lambda:0", ".os"]
)
def test_i7_a_name_that_is_an_expression_is_no_name(entries, nothing_changes, name):
    with nothing_changes():
        told = entries.refusals(task=name)

    assert type(told["store"]) is errors.BadName
    assert "a task name is 1 to 128" in str(told["store"])
    assert type(told["sql"]) is psycopg.errors.CheckViolation
    assert "a_task_name_is_1_to_128" in words(told["sql"])
    assert type(told["python"]) is errors.BadName


def test_i7_pickled_args_are_not_a_document(entries, nothing_changes):
    pickled = pickle.dumps(Touch()).decode("latin-1")

    with nothing_changes():
        with pytest.raises(errors.BadDocument):
            entries.by_store(args=pickled)
        with pytest.raises(psycopg.DataError):
            entries.by_sql(args=pickled)
        with pytest.raises(errors.BadDocument, match="JSON"):
            entries.by_python(Touch())


def test_i7_pickled_text_inside_a_document_stays_text(entries, store):
    inside = base64.b64encode(pickle.dumps(Touch())).decode()

    job = entries.by_python(inside)

    assert store.run(calls.get(job)).args == {"value": inside}
    assert "FAULTLINE_WAS_UNPICKLED" not in os.environ
