#!/bin/sh
# Runs as root before the entry point of PostgreSQL's image. It copies the secrets for the server's account, because
# only their owner may read them. If the server has no data and STANDBY_OF names a primary, it creates a standby of that
# primary.
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
  # While the first data is created, no standby exists for which a commit could wait.
  export PGOPTIONS='-c synchronous_commit=local'
  if [ -n "${STANDBY_OF:-}" ]; then
    # ORDER: copy to a temporary directory, then rename it, so that an interrupted copy is never used.
    rm -rf "$PGDATA.new"
    gosu postgres pg_basebackup --pgdata "$PGDATA.new" --wal-method stream --checkpoint fast --write-recovery-conf --dbname \
      "host=$STANDBY_OF user=leasehold_replica application_name=$(hostname) sslmode=verify-full sslrootcert=$own/ca passfile=$passwords"
    rmdir "$PGDATA"
    mv "$PGDATA.new" "$PGDATA"
  fi
fi
exec docker-entrypoint.sh "$@"
