/**
 * A vault in use, in an empty home, and a shell into which the blocks of a page are pasted. It records every file that
 * exists, and asserts that nothing was lost. It must never change the effect of a block.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { ROOT } from '../conventions/source.ts';
import { type Block, readBlocks } from '../e2e/markdown.ts';
import { Shell } from '../e2e/shell.ts';
import { createClient } from '../kit/client.ts';
import { COMMAND, COMPILED } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { findPort } from '../kit/port.ts';
import { readToken, runCommand } from '../kit/process.ts';
import { childrenOf, signal } from '../kit/processes.ts';

/** The files that a running server changes or removes. */
const LIVE = /\/\.leasehold\/(?:leasehold\.db.*|lock.*|daemon\.\w+|rollback\.marker)$/;
const VALUES: Readonly<Record<string, readonly string[]>> = {
  'prod/db/password': ['the first value', 'the second value'],
  'prod/api/key': ['a key'],
};
/** Commands that read only: one paste on a healthy vault is enough. */
const READS =
  /^leasehold (?:status|doctor|exposure|audit (?:list|verify)|(?:agent|policy|lease|key slot) list)\b[^>&\n]*$/;
/** Undoes what the page does to the path, which must find the programs of this file. */
const OWN_PROGRAMS = `PATH="\${PATH#*/scripts:}"`;
export interface PageBlock extends Block {
  readonly page: string;
}

/** The pages whose blocks are safe to paste. */
export const PAGES: readonly string[] = ['docs/operations.md', 'docs/keys.md', 'docs/backup.md'];

/** The different blocks that do more than read. */
export function writingBlocks(): PageBlock[] {
  const byText = new Map(blocksOf(PAGES).map((block) => [block.text, block]));
  return [...byText.values()].filter(({ text }) => !READS.test(text));
}

/** The shell blocks of the pages. */
export function blocksOf(pages: readonly string[]): PageBlock[] {
  return pages.flatMap((page) =>
    readBlocks(readFileSync(join(ROOT, page), 'utf8'))
      .filter(({ language }) => language === 'sh')
      .map((block) => ({ ...block, page })),
  );
}

/** Programs that the pages call by name: the CLI, and age-keygen, which never replaces a file either. */
function writePrograms(directory: string): void {
  const program = COMMAND.map((word) => `'${word}'`).join(' ');
  const compiled = `NODE_COMPILE_CACHE='${COMPILED.NODE_COMPILE_CACHE}'`;
  const keygen =
    "import { generateX25519Identity } from 'age-encryption'; import { writeFileSync } from 'node:fs';" +
    "writeFileSync(process.argv[2], await generateX25519Identity() + '\\n', { flag: 'wx', mode: 0o600 });";
  const scripts = {
    leasehold: `${compiled} exec ${program} "$@"`,
    'age-keygen': `exec '${process.execPath}' --input-type=module -e "${keygen.replaceAll(/[`$"\\]/g, '\\$&')}" -- "$@"`,
  };
  for (const [name, script] of Object.entries(scripts)) {
    writeFileSync(join(directory, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(directory, name), 0o755);
  }
}

interface Snapshot {
  /** The content by path. */
  readonly files: ReadonlyMap<string, Buffer>;
}

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !LIVE.test(path));
}

const hash = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex');

/** Opens the vault, the directories of the page, and a shell with its names. */
export async function openPasteSandbox(t: TestContext) {
  const shells: Shell[] = [];
  const killAll = (): void => {
    const groups = shells.flatMap(({ pid }) => childrenOf(pid).map((child) => -child));
    signal(groups, 'SIGKILL');
  };
  // ORDER: before the shells end, because their programs in the background would stay.
  t.after(killAll);
  const home = temporaryDirectory(t);
  const programs = temporaryDirectory(t);
  writePrograms(programs);
  const [vaultDir, safe, backups, etc] = ['.leasehold', 'safe', 'backups', 'etc'].map((name) => join(home, name));
  assert.ok(vaultDir && safe && backups && etc);
  for (const directory of [safe, backups, etc]) mkdirSync(directory);
  const address = `127.0.0.1:${await findPort()}`;
  const env = {
    PATH: `${programs}:${process.env['PATH'] ?? ''}`,
    HOME: home,
    LEASEHOLD_LISTEN: address,
    NO_PROXY: '*',
    npm_config_update_notifier: 'false',
    ...COMPILED,
  };
  const newShell = (variables: Readonly<Record<string, string>>, program?: readonly string[]): Shell => {
    const place = { cwd: ROOT, env: { ...env, ...variables } };
    const shell = new Shell(t, temporaryDirectory(t), place, program);
    shells.push(shell);
    return shell;
  };
  const client = () => createClient(`http://${address}`, readToken(join(vaultDir, 'daemon.token')));
  const status = async (): Promise<string | null> => {
    const response = await createClient(`http://${address}`, null)
      .get('/api/v1/health')
      .catch(() => null);
    return response?.body?.data?.status ?? null;
  };

  const identity = await generateX25519Identity();
  const chosen = {
    SAFE: safe,
    BACKUPS: backups,
    ETC: etc,
    CREDENTIALS: etc,
    AGENT: 'deploy-bot',
    CREDENTIAL: 'prod/db/password',
    RECIPIENT: await identityToRecipient(identity),
    ADDRESS: `http://${address}`,
    // The worst choice: the vault that is in use.
    NEW_VAULT: vaultDir,
    NEW_NODE: vaultDir,
  };
  const operations = blocksOf(['docs/operations.md']);
  const under = (heading: string): string[] =>
    operations.filter((block) => block.heading === heading).map(({ text }) => text);
  const names = under('Names')[0] ?? '';

  /** A shell with the names of the pages. */
  const namedShell = async (variables: Readonly<Record<string, string>>, program?: readonly string[]) => {
    const shell = newShell(variables, program);
    await shell.run(names);
    await shell.run(OWN_PROGRAMS);
    return shell;
  };

  const keeper = await namedShell(chosen);
  const started = await keeper.run('start');
  assert.equal(await status(), 'ok', started);
  for (const [path, values] of Object.entries(VALUES)) {
    for (const value of values) {
      assert.equal((await client().post('/api/v1/credentials', { path, value })).status, 201);
    }
  }
  await keeper.run('leasehold agent add deploy-bot');
  const prepared = ['Copy the root key', 'Add a recovery slot', 'Take a backup', 'Keep evidence'].flatMap(under);
  for (const block of prepared) await keeper.run(block);
  const [slot = ''] = readdirSync(safe).flatMap((name) => /^(recovery-.*)\.passphrase$/.exec(name)?.[1] ?? []);
  const [rootKey = ''] = readdirSync(safe).filter((name) => name.startsWith('root.key-'));
  const [backup = ''] = readdirSync(backups);
  assert.deepEqual(
    [slot === '', rootKey === '', backup === ''],
    [false, false, false],
    'the first day leaves all files',
  );
  const variables = { ...chosen, SLOT: slot, ROOT_KEY: join(safe, rootKey), BACKUP: join(backups, backup) };

  const { SLOT, ROOT_KEY, BACKUP } = variables;
  await keeper.run(`SLOT='${SLOT}' ROOT_KEY='${ROOT_KEY}' BACKUP='${BACKUP}'`);

  const takeSnapshot = (): Snapshot => ({
    files: new Map(filesBelow(home).map((path) => [path, readFileSync(path)])),
  });
  /** Each file is there with its bytes, or with more behind them, or its bytes are in a file with another name. */
  const assertFilesKept = ({ files }: Snapshot, what: string): void => {
    const now = new Map(filesBelow(home).map((path) => [path, readFileSync(path)]));
    const hashes = new Set([...now.values()].map(hash));
    for (const [path, before] of files) {
      const isAppended = now.get(path)?.subarray(0, before.length).equals(before) === true;
      assert.ok(isAppended || hashes.has(hash(before)), `${path} was lost by\n${what}`);
    }
    assert.equal(hash(readFileSync(join(vaultDir, 'root.key'))), hash(readFileSync(join(safe, rootKey))), what);
  };
  const inRoot = readdirSync(ROOT).sort();

  /** Starts the server and opens the vault if necessary, and asserts that it has everything. */
  const assertVaultKept = async (what: string): Promise<void> => {
    if ((await status()) === null) await keeper.run('start');
    if ((await status()) === 'locked') await unlock();
    assert.equal(await status(), 'ok', what);
    const admin = client();
    for (const [path, values] of Object.entries(VALUES)) {
      for (const [index, value] of values.entries()) {
        const { body } = await admin.get(`/api/v1/credentials/${path}?version=${index + 1}`);
        assert.equal(body.data?.value, value, `${path}, version ${index + 1}, after\n${what}`);
      }
    }
    assert.equal((await admin.get('/api/v1/audit/verify')).body.data.valid, true, what);
    assert.deepEqual(readdirSync(ROOT).sort(), inRoot, `a file in the working directory\n${what}`);
  };
  const unlock = async (): Promise<void> => {
    const secret = readFileSync(join(safe, rootKey), 'utf8').trim();
    assert.equal((await client().post('/api/v1/unlock', { secret })).status, 200);
  };
  const lock = async (): Promise<void> => {
    assert.equal((await client().post('/api/v1/lock', {})).status, 200);
  };
  const stop = async (): Promise<void> => {
    await keeper.run('stop');
    assert.equal(await status(), null);
  };

  /** The backup of the first day opens with the copy of the root key and with the passphrase of its time. */
  const assertBackupsOpen = async (): Promise<void> => {
    const [publicKey = ''] = readdirSync(safe).filter((name) => /^log-.*\.pub$/.test(name));
    const verifierKey = readFileSync(join(safe, publicKey), 'utf8').trim();
    const secrets = [
      ['--root-key-file', join(safe, rootKey)],
      ['--slot-passphrase-file', join(safe, `${slot}.passphrase`)],
    ];
    for (const secret of secrets) {
      const dataDir = join(temporaryDirectory(t), 'restored');
      const flags = ['--data-dir', dataDir, '--passphrase-file', join(safe, 'backup.passphrase'), ...secret];
      const args = [join(backups, backup), ...flags, '--verifier-key', verifierKey];
      const { code, output } = await runCommand(['restore', ...args]);
      assert.equal(code, 0, output);
      assert.ok(statSync(join(dataDir, 'leasehold.db')).size > 0);
    }
  };

  /** Pastes the block; questions are answered with Enter. */
  const paste = async (shell: Shell, { heading, text }: PageBlock): Promise<string> => {
    const printed = await shell.run(text);
    if (heading === 'Names') await shell.run(OWN_PROGRAMS);
    return printed;
  };

  return {
    variables,
    keeper,
    newShell,
    namedShell,
    paste,
    status,
    lock,
    stop,
    takeSnapshot,
    assertFilesKept,
    assertVaultKept,
    assertBackupsOpen,
  };
}
