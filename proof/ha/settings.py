"""What the cluster's programs are told: Patroni, HAProxy and PgBouncer."""

from pathlib import Path
from typing import Any, Final

from proof.ha.addresses import ADMIN, ETCD, ETCD_IP, HAPROXY_PORT, NET, NODES, OWNER, PGBOUNCER_PORT

TTL, LOOP, RETRY = 20, 5, 5
"""Patroni's ttl, loop_wait and retry_timeout in seconds: the shortest that it allows."""

POSTGRES: Final = {
    "wal_level": "replica", "max_connections": 150, "shared_buffers": "64MB", "wal_log_hints": "on",
    "wal_keep_size": "256MB", "max_wal_senders": 8, "log_checkpoints": "off", "checkpoint_timeout": "5min",
    "wal_sender_timeout": "10s", "wal_receiver_timeout": "10s", "log_line_prefix": "%m [%p] %a ",
}  # fmt: skip
HBA: Final = (
    "local all all trust", f"host all all {NET}.0/24 trust", f"host replication all {NET}.0/24 trust",
    "host all all 127.0.0.1/32 trust",
)  # fmt: skip


def patroni(node: str, home: Path, binaries: Path) -> dict[str, Any]:
    address = NODES[node]
    shared = {
        "ttl": TTL, "loop_wait": LOOP, "retry_timeout": RETRY, "maximum_lag_on_failover": 64 << 20,
        "synchronous_mode": True,
        "postgresql": {"use_pg_rewind": True, "use_slots": True, "parameters": POSTGRES},
    }  # fmt: skip
    return {
        "scope": "ha", "name": node, "watchdog": {"mode": "off"}, "log": {"level": "INFO"},
        "restapi": {"listen": f"{address}:8008", "connect_address": f"{address}:8008"},
        "etcd3": {"hosts": [f"{ETCD_IP}:{port}" for _, port in ETCD]},
        "bootstrap": {"dcs": shared, "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "data-checksums"]},
        "postgresql": {
            "listen": f"{address}:5432", "connect_address": f"{address}:5432",
            "data_dir": str(home / f"data-{node}"), "bin_dir": str(binaries),
            "pgpass": str(home / f"pgpass-{node}"), "pg_hba": HBA,
            "authentication": {
                "superuser": {"username": ADMIN}, "replication": {"username": "replicator"},
                "rewind": {"username": ADMIN},
            },
            "parameters": {"unix_socket_directories": ""},
            "remove_data_directory_on_rewind_failure": True,
            "remove_data_directory_on_diverged_timelines": True,
        },
    }  # fmt: skip


def etcd(name: str, port: int, folder: Path, *, new: bool) -> list[object]:
    peers = ",".join(f"{other}=http://{ETCD_IP}:{at + 1}" for other, at in ETCD)
    clients, peer = f"http://{ETCD_IP}:{port}", f"http://{ETCD_IP}:{port + 1}"
    return [
        "--name", name, "--data-dir", folder, "--initial-cluster-state", "new" if new else "existing",
        "--listen-client-urls", clients, "--advertise-client-urls", clients, "--listen-peer-urls", peer,
        "--initial-advertise-peer-urls", peer, "--initial-cluster", peers,
        "--heartbeat-interval", 200, "--election-timeout", 2000,
    ]  # fmt: skip


def haproxy() -> str:
    check = "check port 8008 inter 1s fall 2 rise 1 on-marked-down shutdown-sessions"
    servers = "\n".join(f"  server {node} {address}:5432 {check}" for node, address in NODES.items())
    return f"""global
  maxconn 500
defaults
  mode tcp
  retries 2
  timeout connect 3s
  timeout client 30m
  timeout server 30m
  timeout check 2s
listen primary
  bind 127.0.0.1:{HAPROXY_PORT}
  option httpchk OPTIONS /primary
  http-check expect status 200
{servers}
"""


def pgbouncer(users: Path) -> str:
    return f"""[databases]
* = host=127.0.0.1 port={HAPROXY_PORT}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {PGBOUNCER_PORT}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = transaction
max_client_conn = 300
default_pool_size = 20
server_login_retry = 1
server_check_delay = 5
logfile =
"""


def pgbouncer_users() -> str:
    return f'"{OWNER}" ""\n"{ADMIN}" ""\n'
