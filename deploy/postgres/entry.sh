#!/bin/sh
# Runs as root before the entry point of PostgreSQL's image. It copies the secrets for the server's account, because
# only their owner may read them. Then it decides the role of this server. WHY: two servers that accept writes are two
# histories of one vault, so a server whose data is a primary's starts only after its PEER has responded: beside a
# standby as the primary, beside a primary that was promoted after it as a new standby of that one.
set -eu
run="${RUN_DIR:-/run}"
own="$run/postgres-secrets"
install -d -o postgres -g postgres -m 700 "$own" "$(dirname "$PGDATA")" "$PGDATA"
install -o postgres -g postgres -m 400 "$run"/secrets/* "$own/"
export POSTGRES_PASSWORD_FILE="$own/postgres_password"
passwords="$own/passwords"
echo "*:*:*:leasehold_replica:$(cat "$own/replica_password")" > "$passwords"
chown postgres:postgres "$passwords"
chmod 400 "$passwords"
peer="host=$PEER user=leasehold_replica application_name=$(hostname) sslmode=verify-full sslrootcert=$own/ca passfile=$passwords"

# Prints "standby" or "primary"; nothing if the peer does not respond.
peer_role() {
  case "$(gosu postgres psql --no-psqlrc --tuples-only --no-align "$peer connect_timeout=3 replication=true" \
    --command 'SHOW in_hot_standby' 2> /dev/null)" in
    on) echo standby ;;
    off) echo primary ;;
  esac
}
peer_timeline() {
  gosu postgres psql --no-psqlrc --tuples-only --no-align "$peer connect_timeout=3 replication=true" \
    --command IDENTIFY_SYSTEM | cut -d '|' -f 2
}
own_timeline() {
  LC_ALL=C gosu postgres pg_controldata "$PGDATA" | sed -n "s/^Latest checkpoint's TimeLineID: *//p"
}

# ORDER: copy to a temporary directory, then rename it, so that an interrupted copy is never used. Data that was there
# is kept beside it.
become_standby() {
  rm -rf "$PGDATA.new"
  gosu postgres pg_basebackup --pgdata "$PGDATA.new" --wal-method stream --checkpoint fast --write-recovery-conf --dbname "$peer"
  if [ -s "$PGDATA/PG_VERSION" ]; then mv "$PGDATA" "$PGDATA.former-$(date +%Y%m%dT%H%M%S)"; else rmdir "$PGDATA"; fi
  mv "$PGDATA.new" "$PGDATA"
}

if [ ! -s "$PGDATA/PG_VERSION" ]; then
  # While the first data is created, no standby exists for which a commit could wait.
  export PGOPTIONS='-c synchronous_commit=local'
  until [ "$(peer_role)" = primary ] || [ "$FIRST_ROLE" = primary ]; do sleep 1; done
  if [ "$(peer_role)" = primary ]; then become_standby; fi
elif [ ! -e "$PGDATA/standby.signal" ]; then
  role="$(peer_role)"
  while [ -z "$role" ] && [ ! -e "$run/start-as-primary" ]; do
    echo "entry.sh: waiting for $PEER, because this server (timeline $(own_timeline)) may be a previous primary. If $PEER is lost, and this server is the right one: docs/cluster.md, \"Split brain\"" >&2
    sleep 5
    role="$(peer_role)"
  done
  rm -f "$run/start-as-primary"
  if [ "$role" = primary ]; then
    if [ "$(peer_timeline)" -gt "$(own_timeline)" ]; then
      become_standby
    else
      echo "entry.sh: $PEER is a primary too, and was not promoted after this server. Stop the wrong one: docs/cluster.md, \"Split brain\"" >&2
      sleep 5
      exit 1
    fi
  fi
fi
exec docker-entrypoint.sh "$@"
