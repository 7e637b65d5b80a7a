// inject fills a template into a private file or a pipe; after a rejection nothing is written and no lease stays
// active.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openScene, VALUES } from './run-fixture.ts';

const scene = await openScene({ after });
const { home } = scene;
const TEXT = 'a: {{leasehold://prod/a}}\nurl: p://{{ leasehold://prod/b | url }}@h\nother: {{ x }}\n';
const FILLED = `a: ${VALUES['prod/a']}\nurl: p://b%40ttery%2Fst%2Bple%20%26%20%22quotes%22@h\nother: {{ x }}\n`;

test('inject writes the text with the values to a pipe or a new private file', async () => {
  assert.equal((await home.leasehold(['inject', '-'], { input: TEXT })).stdout, FILLED);
  writeFileSync(join(home.path, 'app.tpl'), TEXT);
  const out = join(home.path, 'app.yaml');
  const written = await home.leasehold(['inject', 'app.tpl', '--out', 'app.yaml', '--ttl', '4m']);
  assert.deepEqual([written.code, written.stdout], [0, ''], written.stderr);
  assert.equal(readFileSync(out, 'utf8'), FILLED);
  assert.equal(statSync(out).mode & 0o777, 0o600);
  const before = await scene.countActive();
  const again = await home.leasehold(['inject', 'app.tpl', '--out', 'app.yaml']);
  assert.deepEqual([again.code, /app\.yaml cannot be written \(EEXIST\)/.test(again.stderr)], [1, true]);
  assert.equal(await scene.countActive(), before, 'its leases are revoked');
});

test('inject writes nothing when a value is rejected or no reference exists', async () => {
  for (const [input, code, says] of [
    ['{{leasehold://prod/a}} {{leasehold://other/c}}', 2, /template\[2\] \(other\/c\): Access denied/],
    ['nothing', 1, /-: contains no reference/],
    ['{{leasehold://a/../b}}', 1, /-: the path of a credential must not contain/],
  ] as const) {
    const refused = await home.leasehold(['inject', '-', '--out', 'none.yaml'], { input });
    assert.deepEqual([refused.code, refused.stdout], [code, '']);
    assert.match(refused.stderr, says);
    assert.equal(existsSync(join(home.path, 'none.yaml')), false);
  }
});

test('inject writes no values to a terminal', async () => {
  writeFileSync(join(home.path, 'app.tpl'), TEXT);
  const terminal = home.onTerminal(['inject', 'app.tpl']);
  assert.equal((await terminal.ended).exitCode, 1);
  assert.match(terminal.screen(), /would be shown on the terminal/);
});
