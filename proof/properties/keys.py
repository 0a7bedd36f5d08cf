"""Keys: two requests with one key are one job exactly when they ask for the same thing."""

import json
from datetime import timedelta
from typing import Any, Final

from hypothesis import strategies as st

from faultline.bounds import check_key
from faultline.errors import BadName, FaultlineError, InputError, KeyConflict
from faultline.job import NewJob
from faultline.store import calls
from proof.properties.asking import asked
from proof.properties.codecs import some_json, some_text
from proof.properties.ground import PropertyDatabase

some_document = st.dictionaries(some_text, some_json, max_size=3)
some_pair = st.one_of(
    st.tuples(some_document, some_document), some_document.map(lambda one: (one, dict(reversed(one.items()))))
)
some_key = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    st.text("k\x1f\x7f\x80\xa0é\0", max_size=4),
    st.integers(250, 260).map(lambda length: "k" * length),
)


@asked(on_database=True, pair=some_pair)
def one_key_is_one_request(ground: PropertyDatabase, pair: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Asked for twice: the same job back, or a conflict; the order of an object's names does not matter."""
    ground.conn.execute("truncate faultline.keys, faultline.active")
    first, second = (
        NewJob(task="work", args=json.dumps(document), max_attempts=1, key="k", key_for=timedelta(hours=1))
        for document in pair
    )
    again: int | None
    made = ground.run(calls.enqueue(first))
    try:
        # By the other door: SQL is given text there that has no canonical layout yet.
        (again,) = ground.run(calls.enqueue_many([second]))
    except KeyConflict:
        again = None

    assert again == (made if _same(*pair) else None), "OneEffect"
    (count,) = ground.conn.execute("select count(*) from faultline.active").fetchone() or (0,)
    assert count == 1, f"OneEffect: {count} jobs"


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@asked(on_database=True, key=some_key)
def python_and_sql_know_the_same_keys(ground: PropertyDatabase, key: str) -> None:
    """An input that one door refuses, every door refuses."""
    try:
        check_key(key)
        python = True
    except BadName:
        python = False
    try:
        ground.run(calls.enqueue(NewJob(task="work", args="{}", max_attempts=1, key=key)))
        sql = True
    except InputError:
        sql = False
    except FaultlineError as fault:
        raise AssertionError(f"key {key!a} is answered by {type(fault).__name__}") from fault

    assert python == sql, f"key {key!a}: Python says {python}, SQL says {sql}"


PROPERTIES: Final = (one_key_is_one_request, python_and_sql_know_the_same_keys)
