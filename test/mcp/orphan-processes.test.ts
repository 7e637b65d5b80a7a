// What a command leaves behind ends with it, also where it left the command's process group, and nothing else does.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { VALUE } from './fixture.ts';
import { type Script, startServer } from './process.ts';

const PATH = 'prod/db/password';
const credentials = { TOKEN: PATH };
/** A session of its own, which outlives a signal to the group; `late` is what must not be. */
const ESCAPES = `setsid sh -c 'trap "" TERM HUP; touch begun; sleep 2; echo "$TOKEN" > late' &`;
const BEGUN = 'while [ ! -e begun ]; do sleep 0.05; done';

/** Elsewhere nothing tells what has left the group: docs/mcp.md says so. */
const isLinux = existsSync('/proc/self/environ');

const rows: readonly [claim: string, script: Script][] = [
  ['that runs out of time', { lines: `${ESCAPES}\n${BEGUN}; sleep 30`, credentials, toml: 'time_limit_seconds = 1' }],
  ['that ends by itself', { lines: `${ESCAPES}\n${BEGUN}`, credentials }],
];

for (const [claim, work] of rows) {
  test(`of a command ${claim} nothing goes on in a session of its own`, async (t) => {
    if (!isLinux) return;
    const { use, folder } = await startServer(t, { [PATH]: VALUE }, { work });
    await use('run_with_credential', { command: 'work' });
    assert.equal(existsSync(join(folder, 'begun')), true);
    await sleep(2500);
    assert.equal(existsSync(join(folder, 'late')), false);
  });
}

test('when the server stops, nothing of what runs goes on', async (t) => {
  if (!isLinux) return;
  const work = { lines: `${ESCAPES}\n${BEGUN}; sleep 30`, credentials };
  const { use, made, close, folder } = await startServer(t, { [PATH]: VALUE }, { work });
  const running = use('run_with_credential', { command: 'work' }).catch(() => undefined);
  await made('begun');
  await close();
  await running;
  await sleep(2500);
  assert.equal(existsSync(join(folder, 'late')), false);
});

test('one that starts others again and again, each in a session of its own, ends too', async (t) => {
  if (!isLinux) return;
  const lines = `printf 'echo $$ > last; sleep 0.02; setsid sh ./again &\\n' > again; setsid sh ./again & sleep 1`;
  const { use, folder } = await startServer(t, { [PATH]: VALUE }, { work: { lines, credentials } });
  await use('run_with_credential', { command: 'work' });
  const last = readFileSync(join(folder, 'last'), 'utf8');
  await sleep(500);
  assert.equal(readFileSync(join(folder, 'last'), 'utf8'), last);
});

test('another command that runs, and what is of nobody’s, goes on', async (t) => {
  if (!isLinux) return;
  const foreign = spawn('sleep', ['30'], { env: { LEASEHOLD_MCP_RUN: crypto.randomUUID() }, stdio: 'ignore' });
  t.after(() => foreign.kill('SIGKILL'));
  const { use, made, touch } = await startServer(
    t,
    { [PATH]: VALUE },
    {
      short: { lines: 'exit 3', credentials },
      long: { lines: 'touch begun; while [ ! -e go ]; do sleep 0.05; done; echo done', credentials },
    },
  );
  const long = use('run_with_credential', { command: 'long' });
  await made('begun');
  assert.equal((await use('run_with_credential', { command: 'short' }))['exit_code'], 3);
  touch('go');
  assert.equal((await long)['stdout'], 'done\n');
  assert.deepEqual([foreign.exitCode, foreign.signalCode], [null, null]);
});
