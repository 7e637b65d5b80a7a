// `leasehold unlock` gives the secret of a slot to the service only: nothing goes to a program on the default address,
// to another machine, or to a listener that asks for a cheap derivation.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { newPassphraseParameters } from '../../src/crypto/key-slots.ts';
import { newHome } from '../kit/command.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';

const MISSING = ['unlock', '--root-key-file', '/nonexistent'] as const;

/** Answers like a locked vault whose slot has these parameters, and keeps what it is sent. */
async function listen(scope: Scope, parameters: Readonly<Record<string, unknown>>) {
  const received: string[] = [];
  const server = createServer(({ method, url }, response) => {
    received.push(`${method} ${url}`);
    response
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify({ data: [{ name: 'words', kind: 'passphrase', parameters }] }));
  });
  scope.after(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const bound = server.address();
  if (typeof bound !== 'object' || bound === null) throw new Error('the listener has no port');
  return { address: `http://127.0.0.1:${bound.port}`, received };
}

test('without a service in the data directory nothing goes to the default address', async (t) => {
  const home = newHome(t);
  for (const words of [MISSING, ['unlock'], ['unlock', '--passphrase-file', '-']]) {
    const { code, stderr } = await home.leasehold(words, { input: 'correct horse battery staple\n' });
    assert.equal(code, 1, words.join(' '));
    assert.equal(
      stderr,
      `leasehold: No service has published its address in ${home.path}/.leasehold, and another program may listen on http://127.0.0.1:7700. Start the service, or name its address with --address.\n`,
    );
  }
});

test('nothing goes to another machine, whatever names it', async (t) => {
  const home = newHome(t);
  const refused = /is not an address of this machine\. Run leasehold unlock on the machine of the service/;
  const address = 'https://vault.example:7700';
  const flags = await home.leasehold([...MISSING, '--address', address]);
  assert.deepEqual([flags.code, refused.test(flags.stderr)], [1, true], flags.stderr);
  const variable = await home.leasehold(MISSING, { environment: { LEASEHOLD_ADDR: address } });
  assert.match(variable.stderr, /LEASEHOLD_ADDR: https:\/\/vault\.example:7700 is not an address of this machine/);
  mkdirSync(join(home.path, '.leasehold'), { mode: 0o700 });
  writeFileSync(join(home.path, '.leasehold/daemon.address'), `${address}\n`);
  assert.match((await home.leasehold(MISSING)).stderr, refused);
});

test('the service of the data directory is unlocked, and a program on the address that is in it is not', async (t) => {
  const service = await startTestService(t);
  const home = newHome(t, { LEASEHOLD_DATA_DIR: service.dataDir });
  assert.equal((await home.leasehold(['lock', '--yes'])).code, 0);
  const file = join(service.dataDir, 'root.key');
  const unlocked = await home.leasehold(['unlock', '--root-key-file', file, '--field', 'status']);
  assert.equal(unlocked.stdout, 'ok\n', unlocked.stderr);
  const other = await listen(t, newPassphraseParameters());
  writeFileSync(join(service.dataDir, 'daemon.address'), `${other.address}\n`);
  const { code, stderr } = await home.leasehold(['unlock', '--root-key-file', file]);
  assert.deepEqual([code, other.received], [2, ['GET /api/v1/health']]);
  assert.match(stderr, /is not the service of .*; nothing was sent/);
});

test('under another account a holder names the Unix socket or the address', async (t) => {
  const socket = join(temporaryDirectory(t), 'socket');
  for (const flags of [['--listen', `unix:${socket}`], []]) {
    const service = await startTestService(t, flags);
    const operator = newHome(t, { LEASEHOLD_DATA_DIR: service.dataDir });
    const holder = newHome(t);
    const file = join(holder.path, 'root.key');
    copyFileSync(join(service.dataDir, 'root.key'), file);
    assert.equal((await operator.leasehold(['lock', '--yes'])).code, 0);
    const words = ['unlock', '--root-key-file', file, '--address', service.address, '--field', 'status'];
    const { stdout, stderr } = await holder.leasehold(words);
    assert.equal(stdout, 'ok\n', stderr);
  }
});

test('parameters that make the passphrase cheap to guess, or the derivation long, end before anything is sent', async (t) => {
  for (const change of [{ memory_kib: 8, passes: 1 }, { memory_kib: 2 * 1024 ** 2 }, { passes: 100 }]) {
    const other = await listen(t, { ...newPassphraseParameters(), ...change });
    const words = ['unlock', '--passphrase-file', '-', '--address', other.address];
    const { code, stderr } = await newHome(t).leasehold(words, { input: 'correct horse battery staple\n' });
    assert.equal(code, 1, stderr);
    assert.match(stderr, /the parameters of the key slot words are invalid, or outside the bounds/);
    assert.deepEqual(other.received, ['GET /api/v1/unlock']);
  }
});
