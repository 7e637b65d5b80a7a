// Tests moves into the vault: byte-exact, atomic, and only after the service has acknowledged the value.

import assert from 'node:assert/strict';
import { linkSync, lstatSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { findInEnvFile } from '../../src/cli/scan/env-file.ts';
import { type Moved, moveFile, pathFor } from '../../src/cli/scan/move-to-vault.ts';
import { RewriteError, replaceSpans, rewrite } from '../../src/cli/scan/rewrite.ts';
import { isMovable } from '../../src/cli/scan/text.ts';
import { Leasehold } from '../../src/client/leasehold.ts';
import type { CredentialPath } from '../../src/core/path.ts';
import { Secret } from '../../src/core/secret.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';

const finding = (file: string, name: string) => ({ file, line: 1, rule: 'x', hint: '…', name, value: new Secret('v') });
const PATHS: readonly [file: string, path: string][] = [
  ['.env', 'shop/dev/KEY'],
  ['.env.local', 'shop/dev/local/KEY'],
  ['prod.env', 'shop/dev/prod/KEY'],
  ['app/web/.env.test.local', 'shop/dev/app/web/test.local/KEY'],
  ['my app/.env', 'shop/dev/my-app/KEY'],
];

for (const [file, path] of PATHS) {
  test(`KEY in ${file} goes to ${path}`, () =>
    assert.deepEqual(pathFor(['shop', 'dev'], finding(file, 'KEY')), { path }));
}

test('spans are replaced byte by byte, in any order', () => {
  const before = Buffer.from('\ufeffÄ="ö" # ü\r\nB=2');
  const at = (text: string): [number, number] => [before.indexOf(text), before.indexOf(text) + Buffer.byteLength(text)];
  const after = replaceSpans(before, [
    { span: at('2'), text: 'two' },
    { span: at('"ö"'), text: 'one' },
  ]);
  assert.equal(after.toString(), '\ufeffÄ=one # ü\r\nB=two');
});

function envFile(scope: Scope, text: string, mode = 0o640) {
  const directory = temporaryDirectory(scope);
  const path = join(directory, '.env');
  writeFileSync(path, text, { mode });
  return { directory, path, bytes: readFileSync(path), now: () => readFileSync(path, 'utf8') };
}

test('a rewritten file keeps its mode, and no temporary file is left', async (t) => {
  const { directory, path, bytes, now } = envFile(t, 'A=1\n', 0o640);
  await rewrite(path, bytes, Buffer.from('A=2\n'));
  assert.equal(now(), 'A=2\n');
  assert.equal(statSync(path).mode & 0o7777, 0o640);
  assert.deepEqual(readdirSync(directory), ['.env']);
});

/** Changes the file before the rewrite; returns the path to rewrite when it is another one. */
const UNCHANGED: readonly [claim: string, change: (path: string) => string | undefined, rule: RegExp][] = [
  ['changed since the scan', (path) => void writeFileSync(path, 'A=9\n'), /has changed since it was scanned/],
  ['hard-linked', (path) => void linkSync(path, `${path}.2`), /hard link/],
  ['a symbolic link', (path) => symlinkSync(path, `${path}.3`) ?? `${path}.3`, /is a symbolic link/],
  ['missing', (path) => `${path}.missing`, /cannot be replaced \(ENOENT\)/],
];

for (const [claim, change, rule] of UNCHANGED) {
  test(`a file that is ${claim} is not changed`, async (t) => {
    const { directory, path, bytes } = envFile(t, 'A=1\n');
    const target = change(path) ?? path;
    const before = readdirSync(directory).map((name) => [name, lstatSync(join(directory, name)).ino]);
    await assert.rejects(
      rewrite(target, bytes, Buffer.from('x')),
      (error) => error instanceof RewriteError && rule.test(error.message),
    );
    assert.deepEqual(
      readdirSync(directory).map((name) => [name, lstatSync(join(directory, name)).ino]),
      before,
    );
  });
}

async function moves(scope: Scope, text: string) {
  const service = await startTestService(scope);
  const vault = new Leasehold({ address: service.address, token: service.adminToken });
  const file = envFile(scope, text);
  const found = findInEnvFile(file.bytes, '.env').filter(isMovable);
  const move = (using: Pick<Leasehold, 'credentials'> = vault): Promise<readonly Moved[]> => {
    const all = found.map((each) => ({ finding: each, path: `shop/${each.name}` as CredentialPath }));
    return moveFile(using, all, file);
  };
  const stored = async (path: string) => (await service.admin.get(`/api/v1/credentials/${path}`)).body.data?.value;
  return { service, vault, file, move, stored };
}

const TEXT = '\ufeff# keys\r\nexport DB_PASSWORD="hun\\nter2" # prod\r\nPORT=1\r\nAPI_TOKEN=abc\r\n';

test('acknowledged values are replaced, and every other byte stays', async (t) => {
  const { file, move, stored } = await moves(t, TEXT);
  assert.deepEqual(
    (await move()).map(({ failure }) => failure),
    [null, null],
  );
  const after =
    '\ufeff# keys\r\nexport DB_PASSWORD=leasehold://shop/DB_PASSWORD # prod\r\nPORT=1\r\nAPI_TOKEN=leasehold://shop/API_TOKEN\r\n';
  assert.equal(file.now(), after);
  assert.equal(await stored('shop/DB_PASSWORD'), 'hun\nter2');
});

test('another value at the path is not overwritten, and the assignment stays', async (t) => {
  const { file, move, service, stored } = await moves(t, TEXT);
  await service.admin.post('/api/v1/credentials', { path: 'shop/DB_PASSWORD', value: 'other' });
  const [first, second] = await move();
  assert.match(first?.failure ?? '', /^the path already has another value/);
  assert.equal(second?.failure, null);
  assert.equal(await stored('shop/DB_PASSWORD'), 'other');
  assert.match(file.now(), /DB_PASSWORD="hun\\nter2".*API_TOKEN=leasehold:/s);
});

test('a move that was interrupted between storing and rewriting is completed', async (t) => {
  const { file, move, service } = await moves(t, TEXT);
  await service.admin.post('/api/v1/credentials', { path: 'shop/API_TOKEN', value: 'abc' });
  assert.deepEqual(
    (await move()).map(({ failure }) => failure),
    [null, null],
  );
  assert.match(file.now(), /API_TOKEN=leasehold:/);
  const { body } = await service.admin.get('/api/v1/credentials/shop/API_TOKEN?view=metadata');
  assert.equal(body.data.versions.length, 1);
});

test('without an acknowledgement nothing is replaced', async (t) => {
  const { file, move, service } = await moves(t, TEXT);
  const elsewhere = new Leasehold({ address: service.address, token: service.adminToken, retries: 0 });
  await service.stop();
  const moved = await move(elsewhere);
  assert.ok(moved.every(({ failure }) => failure?.includes('UNREACHABLE')));
  assert.equal(file.now(), TEXT);
});

test('a file that changed after the scan is not rewritten, and the value is in the vault', async (t) => {
  const { file, move, stored } = await moves(t, TEXT);
  writeFileSync(file.path, `${TEXT}MORE=1\r\n`);
  assert.ok((await move()).every(({ failure }) => failure?.startsWith('it is stored, but the file was not changed')));
  assert.equal(file.now(), `${TEXT}MORE=1\r\n`);
  assert.equal(await stored('shop/API_TOKEN'), 'abc');
});
