#!/bin/sh
# Creates the secrets of an installation in deploy/secrets: the root key, the administrator's token, passwords and
# certificates. It never overwrites existing files. The containers read them as account 1000.
set -eu
umask 077
cd "$(dirname "$0")"
if [ -e secrets ]; then
  echo 'secrets.sh: deploy/secrets exists already; nothing was changed' >&2
  exit 1
fi
rm -rf secrets.new
mkdir secrets.new
cd secrets.new

openssl rand -base64 32 > root_key
echo "lha_$(openssl rand -hex 32)" > admin_token
for role in postgres owner node replica; do openssl rand -hex 32 > "${role}_password"; done
for role in owner node; do
  echo "postgres://leasehold_$role:$(cat ${role}_password)@postgres1,postgres2/leasehold?sslrootcert=/run/secrets/ca" > ${role}_url
done

# Creates a certificate authority for this installation. Only this script uses its key.
make() { openssl req "$@" -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes; }
make -x509 -days 3650 -subj '/CN=Leasehold of this installation' -keyout ca_key -out ca
issue() {
  make -new -subj "/CN=$1" -keyout "$1_key" -out request
  echo "subjectAltName=$2" > names
  openssl x509 -req -in request -CA ca -CAkey ca_key -CAcreateserial -days 3650 -extfile names -out "$1_certificate"
  rm -f request names ca.srl
}
issue postgres DNS:postgres1,DNS:postgres2
issue balancer DNS:localhost,IP:127.0.0.1
cat balancer_certificate balancer_key > balancer
rm balancer_certificate balancer_key

chmod 400 ./*
if [ "$(id -u)" = 0 ]; then chown -R 1000:1000 .; fi
cd ..
mv secrets.new secrets
if [ "$(id -u)" != 0 ] && [ "$(id -u)" != 1000 ]; then
  echo 'secrets.sh: give the files to account 1000: sudo chown -R 1000:1000 deploy/secrets' >&2
fi
