// `leasehold run` in a real terminal under a shell: job control, restored settings, and the background.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openScene, openTerminal } from './run-fixture.ts';

const scene = await openScene({ after });
const A = ['--env', 'A=prod/a'] as const;

test('a shell inside has job control', async (t) => {
  const words = scene.run(...A, '--', 'bash', '--norc', '--noprofile', '-i');
  const screen = openTerminal(t, scene, words, { PS1: 'say> ' });
  await screen.sees('say> ');
  // One process without children: a stop during a fork can be lost, with or without the command.
  screen.type("sh -c 'echo up $((6*7)); exec cat'\r");
  await screen.sees('up 42');
  screen.type('\u001a');
  await screen.sees('Stopped');
  screen.type('fg\r');
  // Input that is typed while bash hands over the terminal may be lost, as on any terminal.
  for (let tries = 0; tries < 100 && !screen.screen().includes('again\r\nagain\r\n'); tries++) {
    screen.type('again\r');
    await sleep(200);
  }
  screen.type('\u0003');
  await screen.shows(/\^C[\s\S]*say> $/);
  screen.type('exit 3\r');
  assert.deepEqual(await screen.ended, { exitCode: 3, signal: undefined });
});

test('the settings of the terminal are restored', async (t) => {
  const script = 'before=$(stty -g); "$@"; [ "$before" = "$(stty -g)" ] && echo same';
  for (const program of ['stty raw -echo', 'kill -9 $$', 'kill -TERM $PPID; sleep 5']) {
    const screen = openTerminal(t, scene, ['bash', '-c', script, '-', ...scene.run(...A, '--', 'sh', '-c', program)]);
    await screen.ended;
    assert.match(screen.screen(), /same\r\n$/, program);
  }
});

test('in the background of a shell it does not touch the terminal', async (t) => {
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
