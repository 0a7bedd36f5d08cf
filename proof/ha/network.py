"""A bridge, and a network namespace a node: a cable can be pulled, or one road cut, without the others."""

import subprocess
from typing import Final

from proof.ha.addresses import ALONE, ETCD_IP, NET, NODES

BRIDGE: Final = "bridge0"
LINKS: Final = ("lo", "eth0")


def namespace(node: str) -> str:
    return f"node-{node}"


def make() -> None:
    _ip("link", "add", BRIDGE, "type", "bridge")
    for address in (f"{NET}.1", ETCD_IP, *ALONE.values()):
        _ip("addr", "add", f"{address}/24", "dev", BRIDGE)
    _ip("link", "set", BRIDGE, "up")
    for node, address in NODES.items():
        _make_node(node, address)


def _make_node(node: str, address: str) -> None:
    _ip("netns", "add", namespace(node))
    _ip("link", "add", _cable(node), "type", "veth", "peer", "name", "eth0", "netns", namespace(node))
    _ip("link", "set", _cable(node), "master", BRIDGE, "up")
    _inside(node, "addr", "add", f"{address}/24", "dev", "eth0")
    for link in LINKS:
        _inside(node, "link", "set", link, "up")


def drop() -> None:
    for node in NODES:
        _ip("netns", "del", namespace(node), check=False)
    _ip("link", "del", BRIDGE, check=False)


def cut(node: str) -> None:
    """Pull the node's cable: everything sent to it or by it is lost silently."""
    _ip("link", "set", _cable(node), "down")


def mend(node: str) -> None:
    _ip("link", "set", _cable(node), "up")


def cut_from(node: str, *addresses: str) -> None:
    """Cut the road from a node to some addresses; all others stay."""
    for address in addresses:
        _inside(node, "route", "replace", "blackhole", f"{address}/32")


def mend_from(node: str, *addresses: str) -> None:
    for address in addresses:
        _inside(node, "route", "del", "blackhole", f"{address}/32", check=False)


def _cable(node: str) -> str:
    return f"cable-{node}"


def _inside(node: str, *words: str, check: bool = True) -> None:
    _ip("netns", "exec", namespace(node), "ip", *words, check=check)


def _ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=True, text=True)
