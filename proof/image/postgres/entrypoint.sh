#!/bin/sh
# What the official image does at its start, as far as compose.yaml relies on it: the data folder is made once, with the
# superuser's password from a file; the scripts of /docker-entrypoint-initdb.d run once, over a socket; then it serves all clients.
set -eu
if [ "$(id -u)" = 0 ]; then
    mkdir -p "$PGDATA"
    chown -R postgres:postgres /var/lib/postgresql
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    initdb --encoding=UTF8 --locale=C.UTF-8 --username=postgres --pwfile="$POSTGRES_PASSWORD_FILE" --auth-local=trust --auth-host=scram-sha-256
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    pg_ctl --wait --options="-c listen_addresses=''" start
    for script in /docker-entrypoint-initdb.d/*.sh; do
        sh "$script"
    done
    pg_ctl --wait --mode=fast stop
fi
exec "$@" -c "listen_addresses=*"
