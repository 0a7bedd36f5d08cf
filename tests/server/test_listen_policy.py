"""S5: a server will not listen beyond this machine without keys, nor let them travel in the clear."""

import pytest

from faultline.errors import ConfigError
from faultline.server.config import ListenAddress, ServerConfig, is_loopback
from faultline.server.limits import Limits
from faultline.server.listener.listen_policy import check_listen_policy
from faultline.server.process import api_config, grpc_server
from tests.http.serving import serving

EVERYWHERE = ListenAddress("0.0.0.0", 0)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "db.example.org", "::ffff:192.0.2.1"])
def test_s5_beyond_loopback_it_needs_keys_and_tls_or_a_proxy(host):
    beyond = ListenAddress(host, 8000)

    with pytest.raises(ConfigError, match="no API key yet"):
        check_listen_policy(ServerConfig(http=beyond), keys=0)
    with pytest.raises(ConfigError, match="in the clear"):
        check_listen_policy(ServerConfig(http=beyond), keys=1)
    with pytest.raises(ConfigError, match="no API key yet"):
        check_listen_policy(ServerConfig(http=beyond, behind_proxy=True), keys=0)
    check_listen_policy(ServerConfig(http=beyond, behind_proxy=True), keys=1)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost", "::ffff:127.0.0.1"])
def test_s5_on_loopback_it_needs_neither(host):
    check_listen_policy(ServerConfig(http=ListenAddress(host, 8000)), keys=0)
    assert is_loopback(host)


def test_s5_the_door_for_grpc_is_as_narrow():
    with pytest.raises(ConfigError, match="no API key yet"):
        check_listen_policy(ServerConfig(grpc=ListenAddress("0.0.0.0", 8001)), keys=0)


def test_s5_a_server_told_to_listen_everywhere_without_keys_does_not_start(database):
    with pytest.raises(ConfigError, match="no API key yet"), serving(database, http=EVERYWHERE):
        pass


def test_a_port_that_is_taken_is_said_in_one_line(database):
    with (
        serving(database) as first,
        pytest.raises(ConfigError, match="cannot listen on"),
        serving(database, http=first.address),
    ):
        pass


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("127.0.0.1:9000", ListenAddress("127.0.0.1", 9000)),
        (":9000", ListenAddress("127.0.0.1", 9000)),
        ("localhost", ListenAddress("localhost", 8000)),
        ("[::1]:9000", ListenAddress("::1", 9000)),
        ("::1", ListenAddress("::1", 8000)),
    ],
)
def test_an_address_is_read(text, read):
    assert ListenAddress.parse(text) == read


@pytest.mark.parametrize("text", ["a:b", "a:99999", "[::1", "[::1]x", "a:-1", "a:٣"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ConfigError):
        ListenAddress.parse(text)


def test_a_limit_of_nothing_is_refused():
    for wrong in ({"body_bytes_max": 0}, {"wait_seconds_max": -1.0}, {"waits_max": True}):
        with pytest.raises(ConfigError):
            Limits(**wrong)


def test_beyond_loopback_a_key_may_call_it_by_any_name_until_names_are_given():
    """A load balancer knows addresses we do not; a page in a browser has no key to show."""
    assert not api_config(ServerConfig()).any_host_with_key
    assert api_config(ServerConfig(http=ListenAddress("0.0.0.0", 8000))).any_host_with_key
    assert api_config(ServerConfig(behind_proxy=True)).any_host_with_key
    named = api_config(ServerConfig(http=ListenAddress("0.0.0.0", 8000), hosts=("Jobs.Example.org",)))
    assert not named.any_host_with_key
    assert "jobs.example.org" in named.hosts
    assert "0.0.0.0" not in named.hosts


def test_grpc_without_its_extra_says_which_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(ConfigError, match=r"faultline-queue\[grpc\]"):
        grpc_server(None, None, ServerConfig(grpc=ListenAddress("127.0.0.1", 0)))
