#!/bin/sh
# Run once, by the image of PostgreSQL, when its data folder is new: a database for Faultline, owned by a role that is
# no superuser. What runs as the owner of the schema then runs as nobody special.
set -eu
psql --no-psqlrc --set ON_ERROR_STOP=1 --set password="$(cat /secrets/password)" --username postgres --dbname postgres <<'SQL'
create role faultline login password :'password';
create database faultline owner faultline;
SQL
