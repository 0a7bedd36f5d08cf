"""Addresses of the lab, all inside its own network namespace, and the ways to a database."""

from typing import Final

NET: Final = "10.79.0"
NODES: Final = {"a": f"{NET}.11", "b": f"{NET}.12", "c": f"{NET}.13"}
ALONE: Final = {"old": f"{NET}.31", "new": f"{NET}.32"}
"""Servers without Patroni, for upgrades and restores."""

ETCD_IP: Final = f"{NET}.5"
ETCD: Final = tuple((f"e{index}", 2379 + 100 * index) for index in range(3))
HAPROXY_PORT, PGBOUNCER_PORT = 5500, 6500
SERVERS: Final = (8100, 8200)
"""HTTP ports of the replicas of `faultline server`; gRPC is one above."""

DATABASE: Final = "shop"
OWNER: Final = "shop"
ADMIN: Final = "postgres"


def one(address: str, user: str = OWNER, database: str = DATABASE) -> str:
    return f"postgresql://{user}@{address}/{database}"


def several(addresses: list[str], user: str = OWNER, database: str = DATABASE) -> str:
    return f"postgresql://{user}@{','.join(addresses)}/{database}?target_session_attrs=read-write"


def by_port(port: int) -> str:
    return f"postgresql://{OWNER}@127.0.0.1:{port}/{DATABASE}"
