// The connection to PostgreSQL: the certificate must match the name by default, and nothing falls back to plaintext.

import assert from 'node:assert/strict';
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Connection } from '../../src/store/postgres/connection.ts';
import { parseAddress } from '../../src/store/postgres/database-url.ts';
import { makeCertificate } from '../kit/certificate.ts';
import { newDatabase } from '../kit/database.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startPostgres } from '../kit/postgres.ts';
import { chownToServer } from '../kit/programs.ts';
import { startTestService } from '../kit/service.ts';

const scope = { after };
const server = await startPostgres(scope, { settings: { listen_addresses: '127.0.0.1,127.0.0.2' } });
// A self-signed certificate for localhost and 127.0.0.1.
const own = makeCertificate(scope);
for (const [name, file] of [
  ['server.crt', own.certFile],
  ['server.key', own.keyFile],
] as const) {
  copyFileSync(file, join(server.dataDir, name));
  chownToServer(join(server.dataDir, name));
}
await server.query('ALTER SYSTEM SET ssl = on');
await server.stop();
await server.start();

const other = makeCertificate(scope);
const url = (parameters: string, host = '127.0.0.1'): string =>
  `${server.url().replace('127.0.0.1', host)}?${parameters}`;

/** Whether the server reports an encrypted connection, or the error of the connection. */
async function encryptionOf(address: string): Promise<boolean | string> {
  try {
    const connection = await Connection.open(parseAddress(address), 'reading');
    const [row] = await connection.query`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`;
    connection.close();
    return row?.['ssl'] === true;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

test('with its root certificates a server is verified by its name or address only', async () => {
  assert.equal(await encryptionOf(url(`sslmode=verify-full&sslrootcert=${own.certFile}`)), true);
  assert.equal(await encryptionOf(url(`sslmode=verify-full&sslrootcert=${own.certFile}`, 'localhost')), true);
  assert.match(
    String(await encryptionOf(url(`sslmode=verify-full&sslrootcert=${own.certFile}`, '127.0.0.2'))),
    /ERR_TLS_CERT_ALTNAME_INVALID/,
  );
  assert.equal(await encryptionOf(url(`sslmode=verify-ca&sslrootcert=${own.certFile}`, '127.0.0.2')), true);
});

test('a server signed by other roots is rejected except with sslmode=require', async () => {
  for (const mode of ['verify-full', 'verify-ca']) {
    assert.match(
      String(await encryptionOf(url(`sslmode=${mode}&sslrootcert=${other.certFile}`))),
      /DEPTH_ZERO|SELF_SIGNED/,
    );
    assert.match(String(await encryptionOf(url(`sslmode=${mode}`))), /DEPTH_ZERO|SELF_SIGNED/);
  }
  assert.equal(await encryptionOf(url('sslmode=require')), true);
});

test('a server without TLS is not contacted in plaintext, and the error line names the likely cause', async (t) => {
  const plain = await newDatabase(t);
  for (const mode of ['require', 'verify-full']) {
    assert.match(
      String(await encryptionOf(`${plain}?sslmode=${mode}`)),
      /closed the connection at the start of TLS\. Set ssl = on there/,
    );
  }
});

test('a service stores and retrieves over TLS and over a Unix socket', async (t) => {
  const directory = temporaryDirectory(t);
  const overTls = ['--database', url(`sslmode=verify-full&sslrootcert=${own.certFile}`)];
  const first = await startTestService(t, overTls, join(directory, 'one'));
  assert.equal((await first.admin.post('/api/v1/credentials', { path: 'a', value: 'v' })).status, 201);
  await first.stop();
  const key = join(directory, 'one', 'root.key');
  const overSocket = ['--database', server.socketUrl(), '--root-key-file', key];
  const second = await startTestService(t, overSocket, join(directory, 'two'));
  assert.equal((await second.admin.get('/api/v1/credentials/a')).body.data.value, 'v');
  await second.stop();
  assert.doesNotMatch(readFileSync(join(server.dataDir, 'postgresql.conf'), 'utf8'), /root\.key/);
});
