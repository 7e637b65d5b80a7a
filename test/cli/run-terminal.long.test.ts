// `leasehold run` in a real terminal and under a shell: the program's view of the terminal, its output on the terminal,
// restored settings, and the background.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import type { Scope } from '../kit/directory.ts';
import { openScene, openTerminal, type Screen, VALUES } from './run-fixture.ts';

const scene = await openScene({ after });

/** A program that never ends is a failure like any other. */
const claim = (name: string, body: (t: TestContext) => Promise<void>) => test(name, { timeout: 240_000 }, body);

const A = ['--env', 'A=prod/a'] as const;

const run = (scope: Scope, ...words: readonly string[]): Screen => openTerminal(scope, scene, scene.run(...words));
const inShell = (scope: Scope, script: string): Screen => run(scope, ...A, '--', 'sh', '-c', script);

claim('values are masked on the terminal, across its line endings, also in echoed input', async (t) => {
  const screen = run(
    t,
    ...A,
    '--env',
    'P=prod/pem',
    '--',
    'sh',
    '-c',
    'echo "1 $A"; echo "2 <$P>"; printf "3> "; read x; echo "4 $x"',
  );
  await screen.sees('3> ');
  screen.type(`${VALUES['prod/a']}\r`);
  assert.deepEqual(await screen.ended, { exitCode: 0, signal: undefined });
  assert.equal(screen.screen(), '1 [secret]\r\n2 <[secret]\r\n>\r\n3> [secret]\r\n4 [secret]\r\n');
});

claim('Ctrl-C ends a program that does not handle it, and the command by the same signal', async (t) => {
  const screen = inShell(t, 'echo ready; exec sleep 100');
  await screen.sees('ready');
  screen.type('\u0003');
  assert.deepEqual(await screen.ended, { exitCode: 0, signal: constants.signals.SIGINT });
  assert.equal(await scene.countActive(), 0);
});

claim('signals sent to the command reach the program, and its leases are revoked', async (t) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    const screen = inShell(t, `trap 'echo caught; exit 5' ${signal.slice(3)}; echo ready; while :; do sleep 0.1; done`);
    await screen.sees('ready');
    assert.equal(await scene.countActive(), 1);
    process.kill(screen.pid, signal);
    assert.deepEqual(await screen.ended, { exitCode: 5, signal: undefined }, signal);
    assert.ok(screen.screen().includes('caught'), signal);
    assert.equal(await scene.countActive(), 0);
  }
});

claim('a background process is not waited for', async (t) => {
  const screen = inShell(t, `trap '' HUP; sleep 60 & echo done`);
  assert.deepEqual(await screen.ended, { exitCode: 0, signal: undefined });
  assert.equal(screen.screen(), 'done\r\n');
});

claim('without masking the program has the command’s terminal, and Ctrl-C reaches it once', async (t) => {
  const script = `trap 'n=$((n+1)); echo got $n' INT; tty; echo $A; read x; read x; exit 9`;
  const outer = `tty; "$@"; echo "code $?"`;
  const screen = openTerminal(t, scene, [
    'bash',
    '-c',
    outer,
    '-',
    ...scene.run('--no-masking', ...A, '--', 'sh', '-c', script),
  ]);
  await screen.sees(VALUES['prod/a']);
  screen.type('\u0003');
  await screen.sees('got 1');
  screen.type('\r\r');
  await screen.sees('code 9');
  const [one, other] = screen.screen().split('\r\n');
  assert.equal(one, other);
  assert.doesNotMatch(screen.screen(), /got 2/);
});

claim(
  'without the package the program receives pipes, which is said once, and still has its input and Ctrl-C',
  async (t) => {
    const hooks = join(scene.home.path, 'without.mjs');
    writeFileSync(
      hooks,
      `import { registerHooks } from 'node:module';
     registerHooks({ resolve(name, context, next) {
       if (name === '@lydell/node-pty') throw Object.assign(new Error('none'), { code: 'ERR_MODULE_NOT_FOUND' });
       return next(name, context);
     } });`,
    );
    const script = `trap 'n=$((n+1)); echo got $n' INT; test -t 1 || echo pipe; test -t 0 && echo input; echo $A; read x; read x; exit 9`;
    const words = scene.run(...A, '--', 'sh', '-c', script);
    const screen = openTerminal(t, scene, words, { NODE_OPTIONS: `--import=${hooks}` });
    await screen.sees('[secret]');
    screen.type('\u0003');
    await screen.sees('got 1');
    screen.type('\r\r');
    assert.deepEqual(await screen.ended, { exitCode: 9, signal: undefined });
    assert.equal(screen.screen().split('the program receives pipes').length, 2);
    assert.match(screen.screen(), /pipe\r\ninput\r\n\[secret\]\r\n/);
    assert.doesNotMatch(screen.screen(), /got 2/);
  },
);

claim('the settings of the terminal are restored', async (t) => {
  const script = 'before=$(stty -g); "$@"; [ "$before" = "$(stty -g)" ] && echo same';
  for (const program of ['stty raw -echo', 'kill -9 $$', 'kill -TERM $PPID; sleep 5']) {
    const screen = openTerminal(t, scene, ['bash', '-c', script, '-', ...scene.run(...A, '--', 'sh', '-c', program)]);
    await screen.ended;
    assert.match(screen.screen(), /same\r\n$/, program);
  }
});

claim('in the background of a shell it does not touch the terminal', async (t) => {
  const screen = openTerminal(t, scene, ['bash', '--norc', '--noprofile', '-i'], { PS1: 'say> ' });
  await screen.sees('say> ');
  const words = scene
    .run(...A, '--', 'sh', '-c', 'echo "in background: $A"')
    .map((word) => `'${word}'`)
    .join(' ');
  screen.type(`${words} &\r`);
  await screen.sees('in background: [secret]');
  screen.type('wait; echo over; exit\r');
  await screen.sees('over');
  assert.doesNotMatch(screen.screen(), /Stopped/);
});
