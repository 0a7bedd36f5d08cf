#!/bin/sh
# Run once, by the image of PostgreSQL, when its data folder is new: a database for Faultline, owned by a role that is
# no superuser, and a login for each program. What the groups may do `faultline roles create` says, when the schema is there.
set -eu
password() { cat "/secrets/$1"; }
psql --no-psqlrc --set ON_ERROR_STOP=1 --username postgres --dbname postgres \
  --set owner="$(password owner)" --set server="$(password server)" --set worker="$(password worker)" <<'SQL'
create role owner login password :'owner';
create database faultline owner owner;

create role faultline_producer nologin;
create role faultline_worker nologin;
create role faultline_watchdog nologin;
create role faultline_operator nologin;
create role faultline_reader nologin;
create role faultline_server nologin;
create role faultline_migrator nologin noinherit;

create role server login password :'server';
grant faultline_server to server;
create role worker login password :'worker';
grant faultline_worker, faultline_watchdog to worker;
SQL
