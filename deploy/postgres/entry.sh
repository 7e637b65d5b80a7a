#!/bin/sh
# Goes before the entry point of PostgreSQL's image, as root: hands the server the secrets, which only their owner may read, and
# makes a standby out of a server that has no data yet and is told whose standby it is (STANDBY_OF).
set -eu
own=/run/postgres-secrets
install -d -o postgres -g postgres -m 700 "$own" "$(dirname "$PGDATA")" "$PGDATA"
install -o postgres -g postgres -m 400 /run/secrets/* "$own/"
export POSTGRES_PASSWORD_FILE="$own/postgres_password"
passwords="$own/passwords"
echo "*:*:*:leasehold_replica:$(cat "$own/replica_password")" > "$passwords"
chown postgres:postgres "$passwords"
chmod 400 "$passwords"

if [ ! -s "$PGDATA/PG_VERSION" ]; then
  # While the first data is made there is no standby that a commit could wait for.
  export PGOPTIONS='-c synchronous_commit=local'
  if [ -n "${STANDBY_OF:-}" ]; then
    # Beside it first: a copy that was cut off is never taken for whole.
    rm -rf "$PGDATA.new"
    gosu postgres pg_basebackup --pgdata "$PGDATA.new" --wal-method stream --checkpoint fast --write-recovery-conf --dbname \
      "host=$STANDBY_OF user=leasehold_replica application_name=$(hostname) sslmode=verify-full sslrootcert=$own/ca passfile=$passwords"
    rmdir "$PGDATA"
    mv "$PGDATA.new" "$PGDATA"
  fi
fi
exec docker-entrypoint.sh "$@"
