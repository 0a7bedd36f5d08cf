"""S10: a key is shown once, and is in nothing else that is written: no log, no error, no repr, no row."""

import io
import logging
import traceback

import pytest

from faultline import telemetry
from faultline.errors import FaultlineError, NotAuthenticated
from faultline.server.auth import Authenticator, NewKey, mint
from faultline.store import calls
from tests.support import contents

KEY = NewKey("c0ffeec0ffee", "flk_c0ffeec0ffee_" + "5ecre7-_" * 5 + "abc")
SECRET = KEY.text[17:]


@pytest.mark.parametrize(
    "text",
    [
        KEY.text,
        f"Authorization: Bearer {KEY.text}",
        f"GET /api/v1/jobs?key={KEY.text}&state=dead",
        f"'{KEY.text}'",
        f"key={KEY.text},other",
        f'{{"key": "{KEY.text}"}}',
        f"{KEY.text[:-5]}",
        f"FLK {KEY.text}",
        f"xflk_{KEY.id}_{SECRET}",
        f"flk_{SECRET}",
    ],
)
def test_a_key_is_scrubbed_from_whatever_is_told(text):
    assert SECRET[:20] not in telemetry.scrub(text)


def test_an_id_may_be_shown():
    assert telemetry.scrub(f"key {KEY.id} (ops) is revoked") == f"key {KEY.id} (ops) is revoked"
    assert telemetry.scrub(KEY.text) == f"flk_{KEY.id}_***"


@pytest.fixture
def lines():
    """Everything that any logger writes at debug level, in our own formats."""
    stream = io.StringIO()
    root = logging.getLogger()
    before = root.level
    handlers = [logging.StreamHandler(stream), logging.StreamHandler(stream)]
    for handler, form in zip(handlers, (telemetry.JsonFormatter(), telemetry.LineFormatter()), strict=True):
        handler.setFormatter(form)
        root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream
    root.setLevel(before)
    for handler in handlers:
        root.removeHandler(handler)


def test_nothing_that_is_written_holds_a_key(aio, astore, store, db, database, lines):
    """Made, used, refused, rotated, revoked, and each failure of it: grep all that came out."""
    key, said = mint(), []
    store.run(calls.create_key(key.id, key.hash, "ops", ["read"]))
    authenticator = Authenticator(astore)
    caller = aio(authenticator.who(key.text, loopback=False))
    said += [
        repr(caller),
        caller.actor,
        repr(key),
        repr(calls.find_keys([key.id])),
        repr(vars(authenticator)),
    ]
    for wrong in (key.text + "x", key.text[:-1], f"flk_{mint().id}{key.text[16:]}"):
        try:
            aio(authenticator.who(wrong, loopback=False))
        except NotAuthenticated as error:
            said += [str(error), repr(error), "".join(traceback.format_exception(error))]
    try:
        store.run(calls.create_key(key.id, key.hash, "ops", ["read"]))
    except FaultlineError as error:
        said += [str(error), "".join(traceback.format_exception(error))]
    logging.getLogger("elsewhere").warning("a client sent %s", key.text)
    said += [
        repr(store.run(calls.acts())),
        repr(store.run(calls.list_keys(gone=True))),
        repr(contents(database)),
    ]
    said += [repr(db.execute("select query from pg_stat_activity").fetchall()), lines.getvalue()]

    ours = [text for text in said if key.text[17:37] in text]

    assert ours == []
    assert len(said) > 15
    assert "a client sent flk_" in lines.getvalue()
