// `leasehold run` inside a real terminal: what the program sees of it, and what the terminal sees of the program.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Scope } from '../kit/folder.ts';
import { openTerminal, type Screen } from '../kit/terminal.ts';
import { openScene, VALUES } from './runscene.ts';

const scene = await openScene({ after });

const A = ['--env', 'A=prod/a'] as const;

function open(scope: Scope, words: readonly string[], more: Readonly<Record<string, string>> = {}): Screen {
  const { home, environment } = scene;
  return openTerminal(scope, words, { folder: home.path, environment: { ...environment, ...more } });
}

const run = (scope: Scope, ...words: readonly string[]): Screen => open(scope, scene.run(...words));
const inShell = (scope: Scope, script: string): Screen => run(scope, ...A, '--', 'sh', '-c', script);

test('the program stands on a terminal with all three streams, and in colours', async (t) => {
  const screen = inShell(
    t,
    'test -t 0 && test -t 1 && test -t 2 && tty && ls --color=auto -d / && printf "\\033[31m$TERM\\033[0m\\n"',
  );
  assert.deepEqual(await screen.ended, { code: 0, signal: 0 });
  assert.match(screen.shown(), /^\/dev\/pts\/\d+\r\n/);
  assert.ok(screen.shown().includes('\u001b[31mxterm\u001b[0m\r\n'));
  assert.match(screen.shown(), /\u001b\[01;34m\//);
});

test('its exit code is ours, and nothing of its last output is lost', async (t) => {
  const screen = inShell(t, 'seq 20000; exit 42');
  assert.deepEqual(await screen.ended, { code: 42, signal: 0 });
  assert.equal(screen.shown(), Array.from({ length: 20_000 }, (_, at) => `${at + 1}\r\n`).join(''));
});

test('values are masked on the terminal, with its line ends, and so is what is typed and echoed', async (t) => {
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
  await screen.see('3> ');
  screen.press(`${VALUES['prod/a']}\r`);
  assert.deepEqual(await screen.ended, { code: 0, signal: 0 });
  assert.equal(screen.shown(), '1 [secret]\r\n2 <[secret]\r\n>\r\n3> [secret]\r\n4 [secret]\r\n');
});

test('a prompt that ends like the beginning of a value is shown', async (t) => {
  const screen = inShell(t, 'printf "name: h"; read x; echo "<$x>"');
  await screen.see('name: h');
  screen.press('i\r');
  await screen.ended;
  assert.equal(screen.shown(), 'name: hi\r\n<i>\r\n');
});

test('Ctrl-C reaches the program once, and its end is its own', async (t) => {
  const screen = inShell(t, `trap 'n=$((n+1)); echo got $n' INT; echo ready; read x; read x; echo $n; exit 9`);
  await screen.see('ready');
  screen.press('\u0003');
  await screen.see('got 1');
  await sleep(300);
  screen.press('\r');
  await sleep(100);
  screen.press('\r');
  assert.deepEqual(await screen.ended, { code: 9, signal: 0 });
  assert.doesNotMatch(screen.shown(), /got 2/);
});

test('Ctrl-C ends a program that does not mind it, and us by the same signal', async (t) => {
  const screen = inShell(t, 'echo ready; exec sleep 100');
  await screen.see('ready');
  screen.press('\u0003');
  assert.deepEqual(await screen.ended, { code: 0, signal: constants.signals.SIGINT });
  assert.equal(await scene.countActive(), 0);
});

test('signals that are sent to us reach the program, and its leases are revoked', async (t) => {
  const { INT, TERM, HUP } = { INT: 'SIGINT', TERM: 'SIGTERM', HUP: 'SIGHUP' } as const;
  for (const signal of [INT, TERM, HUP]) {
    const screen = inShell(t, `trap 'echo caught; exit 5' ${signal.slice(3)}; echo ready; while :; do sleep 0.1; done`);
    await screen.see('ready');
    assert.equal(await scene.countActive(), 1);
    process.kill(screen.pid, signal);
    assert.deepEqual(await screen.ended, { code: 5, signal: 0 }, signal);
    assert.ok(screen.shown().includes('caught'), signal);
    assert.equal(await scene.countActive(), 0);
  }
});

test('the program has the size of the window, and is told when it changes', async (t) => {
  const screen = inShell(t, `trap 'stty size' WINCH; stty size; echo ready; while :; do read x && exit 0; done`);
  await screen.see('24 80\r\nready');
  screen.resize(100, 30);
  await screen.see('30 100');
  screen.press('\r');
  await screen.ended;
});

test('the keys of a full-screen program arrive one by one, and a line feed goes only down', async (t) => {
  const screen = inShell(t, `stty raw -echo; printf 'ab\\nc'; dd bs=1 count=2 2>/dev/null | od -An -tx1`);
  await screen.see('ab\nc');
  screen.press('\u0003\u0004');
  await screen.see('03 04');
  await screen.ended;
});

test('a shell inside has its jobs', async (t) => {
  const words = scene.run(...A, '--', 'bash', '--norc', '--noprofile', '-i');
  const screen = open(t, words, { PS1: 'say> ' });
  await screen.see('say> ');
  screen.press('sleep 100\r');
  await sleep(300);
  screen.press('\u001a');
  await screen.see('Stopped');
  screen.press('kill %1; wait; exit 3\r');
  assert.deepEqual(await screen.ended, { code: 3, signal: 0 });
});

test('the terminal is afterwards as it was before', async (t) => {
  const script = 'before=$(stty -g); "$@"; [ "$before" = "$(stty -g)" ] && echo same';
  for (const program of ['stty raw -echo', 'kill -9 $$', 'kill -TERM $PPID; sleep 5']) {
    const screen = open(t, ['bash', '-c', script, '-', ...scene.run(...A, '--', 'sh', '-c', program)]);
    await screen.ended;
    assert.match(screen.shown(), /same\r\n$/, program);
  }
});

test('a terminal that is read slowly gets everything', async (t) => {
  const screen = inShell(t, 'echo ready; seq 30000');
  await screen.see('ready');
  screen.pause();
  await sleep(1500);
  screen.resume();
  await screen.ended;
  assert.equal(screen.shown(), `ready\r\n${Array.from({ length: 30_000 }, (_, at) => `${at + 1}\r\n`).join('')}`);
});

test('a program that leaves another one behind is not waited for', async (t) => {
  const screen = inShell(t, `trap '' HUP; sleep 60 & echo done`);
  assert.deepEqual(await screen.ended, { code: 0, signal: 0 });
  assert.equal(screen.shown(), 'done\r\n');
});

test('without masking the program has our terminal, and Ctrl-C reaches it once', async (t) => {
  const script = `trap 'n=$((n+1)); echo got $n' INT; tty; echo $A; read x; read x; exit 9`;
  const outer = `tty; "$@"; echo "code $?"`;
  const screen = open(t, ['bash', '-c', outer, '-', ...scene.run('--no-masking', ...A, '--', 'sh', '-c', script)]);
  await screen.see(VALUES['prod/a']);
  screen.press('\u0003');
  await screen.see('got 1');
  screen.press('\r\r');
  await screen.see('code 9');
  const [one, other] = screen.shown().split('\r\n');
  assert.equal(one, other);
  assert.doesNotMatch(screen.shown(), /got 2/);
});

test('without the package the program gets pipes, which is said once, and still has its input and Ctrl-C', async (t) => {
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
  const screen = open(t, words, { NODE_OPTIONS: `--import=${hooks}` });
  await screen.see('[secret]');
  screen.press('\u0003');
  await screen.see('got 1');
  screen.press('\r\r');
  assert.deepEqual(await screen.ended, { code: 9, signal: 0 });
  assert.equal(screen.shown().split('the program gets pipes').length, 2);
  assert.match(screen.shown(), /pipe\r\ninput\r\n\[secret\]\r\n/);
  assert.doesNotMatch(screen.shown(), /got 2/);
});

test('in the background of a shell it does not touch the terminal', async (t) => {
  const screen = open(t, ['bash', '--norc', '--noprofile', '-i'], { PS1: 'say> ' });
  await screen.see('say> ');
  const words = scene
    .run(...A, '--', 'sh', '-c', 'echo "in background: $A"')
    .map((word) => `'${word}'`)
    .join(' ');
  screen.press(`${words} &\r`);
  await screen.see('in background: [secret]');
  screen.press('wait; echo over; exit\r');
  await screen.see('over');
  assert.doesNotMatch(screen.shown(), /Stopped/);
});
