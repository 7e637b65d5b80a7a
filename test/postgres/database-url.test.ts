// The URL of a database: its parts, the TLS mode of each host, and the rules.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAddress, sslModeFor } from '../../src/store/postgres/database-url.ts';

test('without a mode remote servers are verified, and loopback and Unix sockets are unencrypted', () => {
  const modeOf = (authority: string): string => {
    const address = parseAddress(`postgres://u:p@${authority}/d`);
    return address.hosts.map((host) => sslModeFor(address, host)).join(' ');
  };
  assert.equal(modeOf('db.example'), 'verify-full');
  assert.equal(modeOf('10.0.0.1:6432,127.0.0.1,localhost,[::1]:5433'), 'verify-full disable disable disable');
  assert.equal(modeOf('[2001:db8::1]'), 'verify-full');
  assert.equal(modeOf('127.0.0.1.example'), 'verify-full');
  const socket = parseAddress('postgres://u:p@/d?host=/run/postgresql');
  assert.deepEqual(socket.hosts, [{ kind: 'unix', socket: '/run/postgresql/.s.PGSQL.5432' }]);
  assert.equal(sslModeFor(socket, socket.hosts[0] ?? assert.fail()), 'disable');
});

test('a malformed database URL is rejected by its rule and not repeated', () => {
  for (const [what, address, rule] of [
    ['no URL', 'vault', /must be postgres:\/\//],
    ['another scheme', 'mysql://a:b@c/d', /must be postgres:\/\//],
    ['no user', 'postgres://c/d', /must name a user/],
    ['an unknown parameter', 'postgres://a:b@c/d?sslcert=x', /has an unknown parameter/],
    ['a mode without protection', 'postgres://a:b@c/d?sslmode=prefer', /sslmode must be one of/],
    ['a parameter twice', 'postgres://a:b@c/d?sslmode=require&sslmode=disable', /sslmode must be given once/],
    ['a port that is none', 'postgres://a:b@c:99999/d', /each host must be/],
    ['a standby that is wanted', 'postgres://a:b@c/d?target_session_attrs=standby', /target_session_attrs must be/],
    ['roots that are not there', 'postgres://a:b@c/d?sslrootcert=/nowhere', /sslrootcert must be a file/],
    ['an escape that is none', 'postgres://a:%zz@c/d', /must be percent-encoded/],
  ] as const) {
    assert.throws(
      () => parseAddress(address),
      (error: Error) => rule.test(error.message) && !error.message.includes(address),
      what,
    );
  }
});

test('passwords are decoded once and may contain any character', () => {
  const { user, password, database } = parseAddress('postgres://us%40er:p%3Aa%2Fs%25s@h/da%20ta');
  assert.deepEqual([user, password, database], ['us@er', 'p:a/s%s', 'da ta']);
});
