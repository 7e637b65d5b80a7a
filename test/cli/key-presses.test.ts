// Which keys of a terminal count. SOURCE: docs/approvals.md.
import assert from 'node:assert/strict';
import { PassThrough, Writable } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as immediate } from 'node:timers/promises';
import { KeyPresses } from '../../src/cli/approvals/key-presses.ts';
import type { Terminal } from '../../src/cli/terminal.ts';

const KEYS = ['a', 's'];

/** A terminal whose text `onText` gets as it is shown, and whose quiet times end when the test ends them. */
function openTerminal(onText: (text: string, type: (keys: string) => void) => void = () => undefined) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => undefined });
  let screen = '';
  const type = (keys: string): void => void stdin.write(keys);
  const stderr = new Writable({
    write(chunk, _encoding, done) {
      screen += chunk;
      onText(String(chunk), type);
      done();
    },
  });
  const terminal: Partial<Terminal> = { stdin, stderr: Object.assign(stderr, { isTTY: true }) };
  const quietTimes: (() => void)[] = [];
  const keys = new KeyPresses(
    terminal as Terminal,
    () => new Promise<void>((resolve) => void quietTimes.push(resolve)),
  );
  /** Types the keys, if any, in the next quiet time, and ends it. */
  const passQuiet = async (typed = ''): Promise<void> => {
    while (quietTimes.length === 0) await immediate();
    if (typed !== '') type(typed);
    for (let turn = 0; turn < 5; turn++) await immediate();
    quietTimes.shift()?.();
    for (let turn = 0; turn < 5; turn++) await immediate();
  };
  const ask = () => keys.ask('the card', '[a] [s] ', KEYS, new AbortController().signal);
  return { keys, type, passQuiet, ask, screen: () => screen };
}

test('a key that is pressed while the text is shown, before the prompt, does not count', async () => {
  const { keys, type, passQuiet, ask, screen } = openTerminal((text, press) => {
    if (text === 'the card') press('a');
  });
  using _ = keys;
  const asked = ask();
  await passQuiet();
  assert.equal(screen(), 'the card[a] [s] ');
  type('s');
  assert.equal(await asked, 's');
});

test('while a key is held down the prompt is not shown, and no repetition of it counts', async () => {
  const { keys, type, passQuiet, ask, screen } = openTerminal();
  using _ = keys;
  const asked = ask();
  for (let times = 0; times < 8; times++) {
    await passQuiet('a');
    assert.equal(screen(), 'the card');
  }
  await passQuiet();
  assert.equal(screen(), 'the card[a] [s] ');
  // Several characters are a paste.
  type('aa');
  await immediate();
  type('s');
  assert.equal(await asked, 's');
});
