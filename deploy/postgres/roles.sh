#!/bin/sh
# PostgreSQL's image runs this once, after it has created its first data.
set -eu
own=/run/postgres-secrets
psql --no-psqlrc --set ON_ERROR_STOP=1 --username postgres --dbname postgres \
  --set owner_password="$(cat "$own/owner_password")" --set node_password="$(cat "$own/node_password")" \
  --file /etc/leasehold/roles.sql
psql --no-psqlrc --set ON_ERROR_STOP=1 --username postgres --dbname postgres \
  --set replica_password="$(cat "$own/replica_password")" <<'SQL'
CREATE ROLE leasehold_replica LOGIN REPLICATION PASSWORD :'replica_password';
SQL
