// The operator's list of commands: typos, overly wide entries, and files that other users may change are rejected at
// the start.

import assert from 'node:assert/strict';
import { chmodSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseAllowList } from '../../src/mcp/allowlist.ts';
import { checkPrograms } from '../../src/mcp/programs.ts';
import { UsageError } from '../../src/platform/errors.ts';
import { temporaryDirectory } from '../kit/directory.ts';

const WHOLE = `
[commands.deploy]
description = "Deploys"
program = "/usr/bin/deploy"
arguments = ["--to", "staging"]
directory = "/srv/app"
time_limit_seconds = 120
output_limit_bytes = 1000
[commands.deploy.credentials]
TOKEN = "ci/deploy/token"
PASSWORD = "ci/db/*"
[commands.deploy.variables]
STAGE = "staging"
[commands.deploy.extra_arguments]
pattern = "v[0-9.]+"
most = 2
`;

test('a list is parsed with all its fields', () => {
  const [deploy, ...others] = parseAllowList(WHOLE);
  assert.deepEqual(others, []);
  assert.deepEqual(deploy, {
    name: 'deploy',
    description: 'Deploys',
    program: '/usr/bin/deploy',
    arguments: ['--to', 'staging'],
    directory: '/srv/app',
    credentials: new Map([
      ['TOKEN', 'ci/deploy/token'],
      ['PASSWORD', 'ci/db/*'],
    ]),
    variables: new Map([['STAGE', 'staging']]),
    extraArguments: { pattern: /^(?:v[0-9.]+)$/u, most: 2, allowsOptions: false },
    timeLimitSeconds: 120,
    outputLimitBytes: 1000,
  });
});

test('defaults: no arguments, no variables, no extra arguments, a minute and 64 KiB', () => {
  const [command] = parseAllowList(
    '[commands.a]\ndescription="A"\nprogram="/bin/a"\ndirectory="/"\n[commands.a.credentials]\nA="a"',
  );
  assert.deepEqual(command?.arguments, []);
  assert.deepEqual(command?.variables, new Map());
  assert.equal(command?.extraArguments, null);
  assert.deepEqual([command?.timeLimitSeconds, command?.outputLimitBytes], [60, 65_536]);
});

const BROKEN: readonly [from: string, to: string, says: RegExp][] = [
  ['description', 'descripton', /^commands\.deploy\.descripton: is unknown$/],
  ['[commands.deploy]', '[command.deploy]', /^command: is unknown$/],
  [
    '[commands.deploy]',
    '[[commands.deploy]]',
    /^commands\.deploy: must be object$|^--commands: the file is not valid TOML/,
  ],
  ['program = "/usr/bin/deploy"', '', /^commands\.deploy\.program: is missing$/],
  ['"/usr/bin/deploy"', '"deploy"', /^commands\.deploy\.program: must be an absolute path$/],
  ['"/usr/bin/deploy"', '7', /^commands\.deploy\.program: must be string$/],
  ['"/srv/app"', '"app"', /^commands\.deploy\.directory: must be an absolute path$/],
  ['["--to", "staging"]', '"--to staging"', /^commands\.deploy\.arguments: must be array$/],
  ['["--to", "staging"]', '["--to", 7]', /^commands\.deploy\.arguments\.1: must be string$/],
  ['= 120', '= 0', /^commands\.deploy\.time_limit_seconds: must be >= 1$/],
  ['= 120', '= "120"', /^commands\.deploy\.time_limit_seconds: must be integer$/],
  ['= 1000', '= 99999999', /^commands\.deploy\.output_limit_bytes: must be <= 1048576$/],
  ['"ci/deploy/token"', '"ci/../token"', /^commands\.deploy\.credentials\.TOKEN: must be a path/],
  ['"ci/db/*"', '"ci/*/db"', /^commands\.deploy\.credentials\.PASSWORD: must be a path/],
  ['TOKEN =', '"A=B" =', /^commands\.deploy\.credentials\.A=B: must be a name of a variable/],
  [
    'TOKEN =',
    'LD_PRELOAD =',
    /^commands\.deploy\.credentials\.LD_PRELOAD: must not be a variable that changes how programs load code$/,
  ],
  ['TOKEN =', 'NODE_OPTIONS =', /NODE_OPTIONS: must not be a variable that changes how programs load code$/],
  ['STAGE =', 'TOKEN =', /^commands\.deploy\.variables\.TOKEN: must not be in credentials too$/],
  ['"v[0-9.]+"', '"v["', /^commands\.deploy\.extra_arguments\.pattern: must be a regular expression/],
  ['"v[0-9.]+"', '"a)|(b"', /^commands\.deploy\.extra_arguments\.pattern: must be a regular expression/],
  [
    'most = 2',
    'most = 2\nallow_options = "yes"',
    /^commands\.deploy\.extra_arguments\.allow_options: must be boolean$/,
  ],
  ['most = 2', 'mots = 2', /^commands\.deploy\.extra_arguments\.mots: is unknown/],
  ['deploy', 'Deploy', /^commands\.Deploy: must be 1 to 40 of a-z/],
  ['[commands.deploy]', 'secret-looking text', /^--commands: the file is not valid TOML \(line 2, column \d+\)$/],
];

for (const [from, to, says] of BROKEN) {
  test(`rejected with field and rule: ${to === '' ? `without ${from}` : to}`, () => {
    const text = WHOLE.replaceAll(from, to);
    assert.notEqual(text, WHOLE);
    assert.throws(
      () => parseAllowList(text),
      (error) => error instanceof UsageError && says.test(error.message),
    );
  });
}

test('a list without a command is a usage error', () => {
  for (const text of ['', '[commands]']) assert.throws(() => parseAllowList(text), UsageError);
});

function listOf(program: string, folder: string, more = ''): ReturnType<typeof parseAllowList> {
  const [at, where] = [JSON.stringify(program), JSON.stringify(folder)];
  return parseAllowList(`[commands.a]
description = "A"
program = ${at}
directory = ${where}
credentials = { A = "a" }
${more}`);
}

test('a program or a directory that is missing, or that other users may change, is rejected', async (t) => {
  const folder = temporaryDirectory(t);
  const program = join(folder, 'program');
  writeFileSync(program, '#!/bin/sh\n', { mode: 0o700 });
  await checkPrograms(listOf(program, folder));
  symlinkSync(program, join(folder, 'link'));
  await checkPrograms(listOf(join(folder, 'link'), folder));
  const refused = async (list: ReturnType<typeof listOf>, says: RegExp) =>
    assert.rejects(checkPrograms(list), (error) => error instanceof UsageError && says.test(error.message));
  await refused(listOf(join(folder, 'none'), folder), /^commands\.a\.program: cannot be read \(ENOENT\)$/);
  await refused(listOf(program, join(folder, 'none')), /^commands\.a\.directory: cannot be read \(ENOENT\)$/);
  await refused(listOf(program, program), /^commands\.a\.directory: must be a directory$/);
  await refused(listOf(folder, folder), /^commands\.a\.program: must be a file$/);
  chmodSync(program, 0o722);
  await refused(
    listOf(program, folder),
    /^commands\.a\.program: \S+\/program must not be writable by a group or by all/,
  );
  chmodSync(program, 0o600);
  await refused(listOf(program, folder), /^commands\.a\.program: must be executable$/);
});

test('a shell or an interpreter accepts no arguments from the model, unless it has a program of the operator', async (t) => {
  const folder = temporaryDirectory(t);
  const extra = 'extra_arguments = { pattern = ".*" }';
  for (const program of ['/bin/sh', '/usr/bin/env']) {
    await assert.rejects(checkPrograms(listOf(program, folder, extra)), /extra_arguments: not allowed with/);
    await checkPrograms(listOf(program, folder));
    await checkPrograms(listOf(program, folder, `arguments = ["script"]\n${extra}`));
  }
});
