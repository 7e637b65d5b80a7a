// Write access to the list of commands, a program, or a directory on the path to either decides what is run: only the
// operator and root may have it.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, lchownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { readAllowList } from '../../src/mcp/allowlist.ts';
import { checkPrograms } from '../../src/mcp/programs.ts';
import { UsageError } from '../../src/platform/errors.ts';
import { checkTrustedPath } from '../../src/platform/ownership.ts';
import { newHome } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';
import { EVERYTHING } from './fixture.ts';

const LIST = 'lists/own/commands.toml';
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

/** In a new directory: `lists/own/commands.toml`, and the program of its only command, `programs/own/job`. */
function lay(t: TestContext) {
  const folder = temporaryDirectory(t);
  const at = (path: string): string => join(folder, path);
  for (const path of ['lists/own', 'programs/own']) mkdirSync(at(path), { recursive: true });
  for (const path of ['lists', 'lists/own', 'programs', 'programs/own']) chmodSync(at(path), 0o755);
  writeFileSync(at('programs/own/job'), '#!/bin/sh\n', { mode: 0o700 });
  const write = (program: string, more = 'directory = "/"'): void =>
    writeFileSync(
      at(LIST),
      `[commands.work]\ndescription = "Works"\nprogram = "${program}"\n${more}\ncredentials = {}\n`,
      { mode: 0o600 },
    );
  write(at('programs/own/job'));
  return { folder, at, write };
}
type Laid = ReturnType<typeof lay>;

interface Row {
  readonly says: string;
  readonly change: (laid: Laid) => void;
  /** Else the usual one. */
  readonly list?: string;
  readonly needsRoot?: true;
}

const RULE = 'must not be writable by a group or by all (chmod go-w)';
const OWNER = 'must belong to the user that runs this program, or to root';
const REFUSED: readonly Row[] = [
  {
    says: `--commands: lists/own/commands.toml ${RULE}`,
    change: ({ at }) => chmodSync(at(LIST), 0o620),
  },
  { says: `--commands: lists/own ${RULE}`, change: ({ at }) => chmodSync(at('lists/own'), 0o770) },
  { says: `--commands: lists ${RULE}`, change: ({ at }) => chmodSync(at('lists'), 0o703) },
  {
    says: `commands.work.program: programs/own/job ${RULE}`,
    change: ({ at }) => chmodSync(at('programs/own/job'), 0o702),
  },
  { says: `commands.work.program: programs/own ${RULE}`, change: ({ at }) => chmodSync(at('programs/own'), 0o775) },
  { says: `commands.work.program: programs ${RULE}`, change: ({ at }) => chmodSync(at('programs'), 0o777) },
  {
    says: `commands.work.arguments: programs ${RULE}`,
    change({ at, write }) {
      chmodSync(at('programs'), 0o777);
      write('/bin/sh', `arguments = ["-e", "${at('programs/own/job')}"]\ndirectory = "/"`);
    },
  },
  {
    says: `commands.work.arguments: programs/own/job ${RULE}`,
    change({ at, write }) {
      chmodSync(at('programs/own/job'), 0o770);
      write('/bin/sh', `arguments = ["job"]\ndirectory = "${at('programs/own')}"`);
    },
  },
  {
    says: `--commands: open ${RULE}`,
    change({ at }) {
      mkdirSync(at('open'));
      chmodSync(at('open'), 0o777);
      symlinkSync('../lists/own/commands.toml', at('open/list'));
    },
    list: 'open/list',
  },
  {
    says: `commands.work.program: programs ${RULE}`,
    change({ at, write }) {
      chmodSync(at('programs'), 0o777);
      symlinkSync(at('programs/own'), at('link'));
      write(at('link/job'));
    },
  },
  { says: '--commands: must be a file', change: () => undefined, list: 'lists/own' },
  {
    says: '--commands: must be a file',
    change: ({ at }) => void execFileSync('mkfifo', ['-m', '600', at('fifo')]),
    list: 'fifo',
  },
  {
    says: `--commands: lists/own/commands.toml ${OWNER}`,
    change: ({ at }) => chownSync(at(LIST), NOBODY, NOBODY),
    needsRoot: true,
  },
  {
    says: `commands.work.program: programs ${OWNER}`,
    change: ({ at }) => chownSync(at('programs'), NOBODY, NOBODY),
    needsRoot: true,
  },
  {
    says: `--commands: open/list ${OWNER}`,
    change({ at }) {
      mkdirSync(at('open'));
      chmodSync(at('open'), 0o1777);
      symlinkSync(at(LIST), at('open/list'));
      lchownSync(at('open/list'), NOBODY, NOBODY);
    },
    list: 'open/list',
    needsRoot: true,
  },
];

/** `leasehold mcp` over standard input and output, with a client that disconnects immediately. */
async function begin(t: TestContext) {
  const service = await startTestService(t);
  await service.agent('builder', EVERYTHING);
  const home = newHome(t);
  const key = join(service.dataDir, 'agents/builder/private_key.pem');
  const who = ['--address', service.address, '--agent', 'builder', '--key-file', key];
  return (list: string) => home.leasehold(['mcp', ...who, '--commands', list]);
}

/** As the command reads the list and checks what it names, before it serves. */
const prepare = async (list: string): Promise<void> => checkPrograms(await readAllowList(list));

test('nothing is run that other users can change, and the error names the location', async (t) => {
  for (const { says, change, list = LIST, needsRoot } of REFUSED) {
    if (needsRoot === true && !isRoot) continue;
    const laid = lay(t);
    change(laid);
    await assert.rejects(prepare(laid.at(list)), (error) => {
      assert.ok(error instanceof UsageError, says);
      assert.equal(error.message.replaceAll(`${laid.folder}/`, ''), says);
      return true;
    });
  }
});

test('the server does not start if other users can write the list or a program, and says so in one line', async (t) => {
  const serve = await begin(t);
  for (const path of [LIST, 'programs/own/job']) {
    const { at } = lay(t);
    chmodSync(at(path), 0o702);
    const { code, stdout, stderr } = await serve(at(LIST));
    assert.deepEqual([code, stdout], [1, ''], path);
    assert.match(stderr, /^leasehold: .* must not be writable by a group or by all \(chmod go-w\)\.\n/);
  }
});

test('it starts if only the operator and root can, also in a sticky directory and over links', async (t) => {
  const serve = await begin(t);
  const { at, write } = lay(t);
  const starts = async (list: string): Promise<void> => {
    const { code, stderr } = await serve(list);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /tools: .*run_with_credential/);
  };
  await starts(at(LIST));
  chmodSync(at('lists'), 0o1777);
  symlinkSync('own/../own/commands.toml', at('lists/link'));
  write('/bin/sh', `arguments = ["-c", "${at('programs/own/job')}"]\ndirectory = "/"`);
  await starts(at('lists/link'));
});

test('links are followed as the kernel follows them', async (t) => {
  const { at } = lay(t);
  const leads = async (path: string): Promise<number> => (await checkTrustedPath(at(path), 'x')).ino;
  const job = await leads('programs/own/job');
  symlinkSync(at('programs/own'), at('lists/away'));
  // `..` is that of where the link leads, and not of where it lies.
  assert.equal((await checkTrustedPath(`${at('lists')}/away/../own/job`, 'x')).ino, job);
  symlinkSync('away/../own/./job', at('lists/twice'));
  assert.equal(await leads('lists/twice'), job);
  assert.equal((await checkTrustedPath(`/../${at('lists/twice')}`, 'x')).ino, job);
  symlinkSync('loop', at('lists/loop'));
  for (const [path, code] of [
    ['lists/loop', 'ELOOP'],
    ['lists/none', 'ENOENT'],
    ['programs/own/job/more', 'ENOTDIR'],
  ] as const) {
    await assert.rejects(
      checkTrustedPath(at(path), 'x'),
      (error) => error instanceof UsageError && error.message === `x: cannot be read (${code})`,
    );
  }
});
