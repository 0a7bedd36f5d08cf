"""What a caller is made of: a mistake of the code that makes one must not open anything."""

import pytest

from faultline.errors import ConfigError
from faultline.server.auth import Caller

READ = frozenset({"read"})


@pytest.mark.parametrize(
    ("scopes", "queues"),
    [
        ("read not-an-admin", None),  # the scopes of a token of OAuth: "admin" is in that text
        ({"read", "admin:users"}, None),
        (["read"], None),
        (READ, "billing"),  # "bill" is in that text
        (READ, ["billing"]),
    ],
)
def test_scopes_and_queues_are_sets_of_names(scopes, queues):
    with pytest.raises(ConfigError, match="is a set of names"):
        Caller("ann", scopes, queues)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "  ",
        None,
        7,
        "a" * 201,
        "ann\nboss",
        "ann\x1b[2J",
        "ann\u202e",
        "a\0b",
        "a\ud800",
        "boss (key 3f1c7a9e0b52)",
    ],
)
def test_a_user_is_noted_under_a_name_of_its_own(name):
    with pytest.raises(ConfigError, match="a caller's name"):
        Caller(name, READ, None)


def test_a_key_may_have_the_name_that_it_was_given():
    assert Caller("boss (key 3f1c7a9e0b52)", READ, None, "c0ffeec0ffee").actor.endswith("(key c0ffeec0ffee)")
