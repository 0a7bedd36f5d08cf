"""A DSN that cannot be read is refused before a connection is tried, and its message names the mistake."""

import pytest

from faultline.config import Settings
from faultline.errors import ConfigError
from faultline.store.driver.connect import conninfo
from faultline.store.servers.hosts import hosts_of


@pytest.mark.parametrize(
    ("dsn", "said"),
    [
        ("postgresql://app:hush@db/shop?connect_timeout=abc", "connect_timeout is a whole number; got 'abc'"),
        ("host=db connect_timeout=1.5", "connect_timeout is a whole number; got '1.5'"),
        ("host=db connect_timeout=" + "9" * 5000, "connect_timeout is a whole number; got '9999"),
        ("host=a,b port=5432,x", "port is a whole number; got 'x'"),
        ("host=db keepalives_idle=often", "keepalives_idle is a whole number; got 'often'"),
        ("host=db tcp_user_timeout=15s", "tcp_user_timeout is a whole number; got '15s'"),
    ],
)
def test_a_word_where_a_number_belongs_is_named(dsn, said):
    with pytest.raises(ConfigError, match=r"^the DSN .* cannot be read: ") as refused:
        conninfo(dsn)

    assert said in str(refused.value)
    assert "hush" not in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    "dsn", ["host=a,b port=,5433", "host=db connect_timeout=-1", "postgresql://[::1]:5432/shop"]
)
def test_numbers_as_libpq_reads_them_are_taken(dsn):
    assert hosts_of(conninfo(dsn)).connect_seconds >= 2


@pytest.mark.parametrize(
    ("dsn", "said"),
    [
        ("postgresql://app:hush@db/shop?sslmod=require", "sslmod is no parameter (did you mean sslmode?)"),
        ("host=db sslmod=require", "sslmod is no parameter (did you mean sslmode?)"),
        ("postgresql://db/shop?elephant=1", "elephant is no parameter; check"),
    ],
)
def test_a_mistyped_parameter_is_named(dsn, said):
    with pytest.raises(ConfigError, match=r"^the DSN .* cannot be read: ") as refused:
        conninfo(dsn)

    assert said in str(refused.value)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://db/shop?application_name=half@word&hush=x",
        "postgresql://db/shop?password=half&hush=x",
        "host=db password=half hush=x",
    ],
)
def test_what_may_be_half_a_password_is_not_named(dsn):
    with pytest.raises(ConfigError) as refused:
        conninfo(dsn)

    assert "hush" not in str(refused.value)


def test_what_may_be_half_a_password_still_tells_the_name_it_is_near_to():
    with pytest.raises(ConfigError, match=r"a parameter is not known \(did you mean sslmode\?\)"):
        conninfo("host=db password=half sslmod=require")


@pytest.mark.parametrize("dsn", [" postgresql://db/shop", "postgresql://db/shop\n", "\thost=db dbname=shop"])
def test_blanks_around_a_dsn_are_no_part_of_it(dsn):
    assert "dbname=shop " in conninfo(dsn)
    assert Settings.read(dsn=dsn).dsn == dsn.strip()


def test_a_blank_at_the_end_of_pairs_may_be_a_part_of_a_password():
    dsn = "host=db dbname=shop password=hush\\ "

    assert Settings.read(dsn=dsn).dsn == dsn
    assert r"password='hush '" in conninfo(dsn)


@pytest.mark.parametrize("quote", ["'", '"'])
@pytest.mark.parametrize("read", [conninfo, lambda dsn: Settings.read(dsn=dsn)])
def test_a_dsn_in_literal_quotes_is_told_so(quote, read):
    """As an env file gives it, whose quotes are no shell's; the message is not to show what they hold."""
    with pytest.raises(ConfigError, match=r"the DSN begins with a quote; .* leave the quotes out") as refused:
        read(f"{quote}postgresql://app:hush@db/shop{quote}")

    assert "hush" not in str(refused.value)


def test_a_quote_inside_a_dsn_does_not_let_its_password_out():
    with pytest.raises(ConfigError) as refused:
        conninfo('host="db password=x" "hush"')

    assert "hush" not in str(refused.value)
