// Completion: each script offers every command and flag of the table at its position, and files elsewhere.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { flagsOf } from '../../src/cli/command.ts';
import { ENTRIES } from '../../src/cli/table.ts';
import { newHome } from '../kit/command.ts';

test('bash offers every command, and the flags of each command, and nothing in place of a file', async (t) => {
  const { stdout: script } = await newHome(t).leasehold(['completion', 'bash']);
  const lines = ['', 'pol', 'policy ', 'policy put x --', 'get --f', 'put a @', 'run -- '];
  const commands = await Promise.all(ENTRIES.map((entry) => entry.load()));
  const flagged = commands.filter(({ takesAllWords }) => takesAllWords !== true);
  const asked = [...lines, ...flagged.map(({ name }) => `${name} --`)];
  const calls = asked.map((line) => {
    const words = ['leasehold', ...line.split(' ')].map((word) => `'${word}'`);
    return `COMP_WORDS=(${words.join(' ')}) COMP_CWORD=${words.length - 1}; _leasehold; echo "\${COMPREPLY[*]}"`;
  });
  const printed = execFileSync('bash', ['-c', [script, ...calls].join('\n')], { encoding: 'utf8' });
  const offers = printed
    .trimEnd()
    .split('\n')
    .map((line) => line.split(' '));
  const [first = [], begun, verbs, , filtered, file, afterDashes] = offers;
  assert.deepEqual(first.toSorted(), [...new Set(ENTRIES.map(({ name }) => name.split(' ')[0]))].toSorted());
  assert.deepEqual(begun, ['policy']);
  assert.ok(verbs?.includes('put') && verbs.includes('apply'));
  assert.deepEqual(filtered, ['--field']);
  assert.deepEqual([file, afterDashes], [[''], ['']]);
  for (const [at, command] of flagged.entries()) {
    assert.deepEqual(
      offers[lines.length + at],
      Object.keys(flagsOf(command)).map((name) => `--${name}`),
      command.name,
    );
  }
});

test('zsh gets the script of bash, fish one of its own, and another shell an error', async (t) => {
  const home = newHome(t);
  const [bash, zsh, fish, other] = await Promise.all(
    ['bash', 'zsh', 'fish', 'tcsh'].map((shell) => home.leasehold(['completion', shell])),
  );
  assert.equal(zsh?.stdout, `autoload -U +X bashcompinit && bashcompinit\n${bash?.stdout}`);
  for (const { name } of ENTRIES) assert.ok(fish?.stdout.includes(`-a ${name.split(' ').at(-1)} -d`), name);
  assert.deepEqual([other?.code, other?.stderr.split('.')[0]], [1, 'leasehold: SHELL: must be one of bash, zsh, fish']);
});
