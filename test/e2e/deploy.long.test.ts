// The image without a container engine: the tree that the Containerfile copies, with the packages that it installs,
// started by its command.

import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { outsideOfImage, readContainerfile } from '../conventions/containerfile.ts';
import { ROOT } from '../conventions/source.ts';
import { createClient } from '../kit/client.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { findPort } from '../kit/port.ts';
import { until } from '../kit/processes.ts';

const { copied, entrypoint, health } = readContainerfile();

/** The tree of the image, with links to the packages that npm would install. */
function makeTree(scope: Scope): string {
  const tree = temporaryDirectory(scope);
  for (const { from, to } of copied) cpSync(join(ROOT, from), join(tree, to), { recursive: true });
  const lock: { packages: Record<string, { dev?: boolean }> } = JSON.parse(
    readFileSync(join(ROOT, 'package-lock.json'), 'utf8'),
  );
  for (const [name, { dev }] of Object.entries(lock.packages)) {
    if (!/^node_modules\/(?:@[^/]+\/)?[^/]+$/.test(name) || dev === true) continue;
    mkdirSync(dirname(join(tree, name)), { recursive: true });
    symlinkSync(join(ROOT, name), join(tree, name));
  }
  return tree;
}

test('the image’s tree starts by its command without development packages, is healthy and stops', async (t) => {
  const tree = makeTree(t);
  const port = await findPort();
  const environment = { LEASEHOLD_DATA_DIR: join(tree, 'data'), LEASEHOLD_LISTEN: `0.0.0.0:${port}` };
  const askHealth = async (): Promise<number> => {
    const [program = '', ...words] = outsideOfImage(health, tree);
    return new Promise((resolve) => {
      execFile(program, words, { env: environment }, (error) => resolve(error === null ? 0 : Number(error.code)));
    });
  };
  const [program = '', ...words] = outsideOfImage(entrypoint, tree);
  const refused = spawn(program, words, { env: environment, stdio: 'ignore' });
  assert.deepEqual(await once(refused, 'close'), [2, null], 'a start without TLS needs a flag');
  assert.equal(await askHealth(), 1);

  const child = spawn(program, [...words, '--insecure-http'], { env: environment, stdio: 'ignore' });
  t.after(() => child.kill('SIGKILL'));
  const ended = once(child, 'close');
  const client = createClient(`http://127.0.0.1:${port}`, null);
  const isWell = () =>
    client.get('/api/v1/health').then(
      ({ status }) => status === 200,
      () => false,
    );
  await until(isWell, 120_000, () => 'the service did not start');
  assert.equal(await askHealth(), 0);
  child.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
  assert.equal(await askHealth(), 1);
});

test('the schema command of compose.yaml runs in the image’s file tree', (t) => {
  const tree = makeTree(t);
  const words = [
    '--disable-sigusr1',
    '--disable-proto=delete',
    join(tree, 'src/bin/leasehold.ts'),
    'schema',
    '--print',
    '--grant=leasehold_node',
  ];
  const printed = execFileSync(process.execPath, words, { encoding: 'utf8', env: {} });
  assert.match(printed, /^GRANT SELECT, INSERT ON leasehold\.audit_entries TO "leasehold_node";$/m);
});
