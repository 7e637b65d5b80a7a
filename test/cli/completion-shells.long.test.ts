// Completions in real shells: typed, completed with the tab key, and inspected as the program receives the line.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { newHome } from '../kit/command.ts';
import { startTestService } from '../kit/service.ts';
import { type Bench, makeBench, openShell, SHELLS_HERE, zshInBash } from './shells.ts';

/** What is typed, and the line after a tab and an `X`, which is a separate word if the completed word is complete. */
const LINES: readonly [typed: string, words: readonly string[]][] = [
  ['leasehold poli', ['leasehold', 'policy', 'X']],
  ['leasehold policy sh', ['leasehold', 'policy', 'show', 'X']],
  ['leasehold get --fie', ['leasehold', 'get', '--field', 'X']],
  ['leasehold get -o js', ['leasehold', 'get', '-o', 'json', 'X']],
  ['leasehold get --output=js', ['leasehold', 'get', '--output=json', 'X']],
  ['leasehold get pro', ['leasehold', 'get', 'prod/X']],
  ['leasehold get prod/db/pa', ['leasehold', 'get', 'prod/db/password', 'X']],
  ['leasehold get odd:na', ['leasehold', 'get', 'odd:name=a@host', 'X']],
  ['leasehold get odd:name=a@', ['leasehold', 'get', 'odd:name=a@host', 'X']],
  ['leasehold get odd:name=a@ho', ['leasehold', 'get', 'odd:name=a@host', 'X']],
  ['leasehold lease list --path=prod/db', ['leasehold', 'lease', 'list', '--path=prod/db/password', 'X']],
  ['leasehold run --env PGPASSWORD=prod/d', ['leasehold', 'run', '--env', 'PGPASSWORD=prod/db/password', 'X']],
  ['leasehold policy delete re', ['leasehold', 'policy', 'delete', 'reads-db', 'X']],
  ['leasehold agent show dep', ['leasehold', 'agent', 'show', 'deploy-bot', 'X']],
  ['leasehold --agent dep', ['leasehold', '--agent', 'deploy-bot', 'X']],
  ['leasehold get a --key-file some', ['leasehold', 'get', 'a', '--key-file', 'some.pem', 'X']],
  ['leasehold get a --key-file=some', ['leasehold', 'get', 'a', '--key-file=some.pem', 'X']],
  ['leasehold get a --data-dir fol', ['leasehold', 'get', 'a', '--data-dir', 'folder/X']],
  ['leasehold run --env A=b -- only-he', ['leasehold', 'run', '--env', 'A=b', '--', 'only-here-program', 'X']],
  ['leasehold completion fi', ['leasehold', 'completion', 'fish', 'X']],
  ['leasehold nothing-like-th', ['leasehold', 'nothing-like-thX']],
];

async function prepare(t: TestContext): Promise<Bench> {
  const service = await startTestService(t);
  await service.agent('deploy-bot');
  const grant = { name: 'reads-db', principal: 'agent:deploy-bot', resources: ['prod/*'], actions: ['retrieve'] };
  await service.admin.post('/api/v1/policies', grant);
  for (const path of ['prod/db/password', 'prod/mail/key', 'odd:name=a@host']) {
    await service.admin.post('/api/v1/credentials', { path, value: 'x' });
  }
  const bench = makeBench(t, { LEASEHOLD_DATA_DIR: service.dataDir });
  writeFileSync(join(bench.folder, 'some.pem'), '');
  mkdirSync(join(bench.folder, 'folder'));
  writeFileSync(join(bench.folder, 'folder', 'a'), '');
  return bench;
}

for (const name of SHELLS_HERE) {
  test(`${name} completes commands, flags, choices, paths, names, files and programs`, async (t) => {
    const shell = await openShell(t, name, await prepare(t));
    const got: (readonly [string, readonly string[]])[] = [];
    for (const [typed] of LINES) got.push([typed, await shell.completed(typed)]);
    assert.deepEqual(got, LINES);
  });
}

/** What a shell would put into the line. */
function common(words: readonly string[]): string {
  const [first = '', ...others] = words;
  let { length } = first;
  while (!others.every((other) => other.startsWith(first.slice(0, length)))) length -= 1;
  return first.slice(0, length);
}

test('the zsh script adds the same words when bash runs it with replacements for zsh’s functions', async (t) => {
  const bench = await prepare(t);
  for (const [typed, words] of LINES) {
    const [, ...given] = typed.split(' ');
    const begun = given.at(-1) ?? '';
    const isWhole = words.at(-1) === 'X';
    const wanted = isWhole ? `${words.at(-2)} ` : (words.at(-1) ?? '').replace(/X$/, '');
    const added = common(await zshInBash(given, bench));
    // What a file or a program is called is the shell’s own to say.
    const isTheShells = /--key-file|--data-dir|only-he/.test(typed);
    if (isTheShells) assert.equal(added, wanted.replace(/^--key-file=|[ /]$/g, ''), typed);
    else assert.equal(added, wanted === begun ? '' : wanted, typed);
  }
});

test('the shells can parse their scripts, and an unknown shell is a usage error', async (t) => {
  const home = newHome(t);
  for (const name of ['bash', 'zsh', 'fish'] as const) {
    const { code, stdout, stderr } = await home.leasehold(['completion', name]);
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, new RegExp(`# Completion of leasehold in ${name}`));
    // That of zsh is kept to what bash reads too.
    const reader = SHELLS_HERE.find((here) => here === name) ?? (name === 'zsh' ? 'bash' : null);
    writeFileSync(join(home.path, name), stdout);
    if (reader !== null) execFileSync(reader, ['-n', join(home.path, name)], { stdio: 'pipe' });
  }
  const { code, stderr } = await home.leasehold(['completion', 'tcsh']);
  assert.equal(code, 1);
  assert.match(stderr, /^leasehold: SHELL: must be one of bash, zsh, fish\.\n/);
});
