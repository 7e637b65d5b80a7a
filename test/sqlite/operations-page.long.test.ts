/**
 * The incidents of docs/operations.md. The test causes each incident and runs the blocks that handle it, in one shell;
 * each block prints the output on the page. `UPDATE_PAGE=1 npm test -- --tests-only
 * test/sqlite/operations-page.long.test.ts` writes the output to the page. test/postgres/cluster-page.long.test.ts runs
 * the blocks about nodes.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ROOT } from '../conventions/source.ts';
import { withPlaceholders } from '../e2e/markdown.ts';
import { openPage, readSteps, type Step } from '../e2e/page.ts';
import { launchSupervised } from '../faults/supervised.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { startTransit, TRANSIT_TOKEN } from '../kit/key-services.ts';

const PAGE = 'docs/operations.md';
const ABOUT_NODES = 'A node is lost';
const WRITES = ['write', 'pwrite64', 'ftruncate', 'openat', 'mkdir', 'rename'];
const NO_ROOM = { calls: WRITES, error: 'ENOSPC', after: 0, times: null } as const;
const VALUE = 'correct horse battery staple';

/** A scope that ends before its test does. */
function endableScope() {
  const cleanUps: (() => unknown)[] = [];
  const scope: Scope = { after: (cleanUp) => void cleanUps.push(cleanUp) };
  return { scope, end: async () => void (await Promise.all(cleanUps.splice(0).map((cleanUp) => cleanUp()))) };
}

/** The page with the output of the steps that ran. */
function withOutput(page: string, steps: readonly Step[], outputs: ReadonlyMap<Step, string>): string {
  let at = 0;
  return steps.reduce((text, step) => {
    const block = `\`\`\`sh\n${step.commands}\n\`\`\`\n`;
    at = text.indexOf(block, at) + block.length;
    const output = outputs.get(step);
    if (output === undefined) return text;
    const behind = text.slice(at).replace(/^\n```text\n(?:[\s\S]*?\n)??```\n/, '');
    return `${text.slice(0, at)}${output === '' ? '' : `\n\`\`\`text\n${output}\n\`\`\`\n`}${behind}`;
  }, page);
}

/** A shell with the names of the page, and its blocks. */
async function openRunbook(t: TestContext, variables: Readonly<Record<string, string>>) {
  const scene = await openPage(t, variables);
  const { home, shell, tidy } = scene;
  const [safe, backups] = [join(home, 'safe'), join(home, 'backups')];
  for (const directory of [safe, backups]) mkdirSync(directory);
  await shell.run(`SAFE='${safe}' BACKUPS='${backups}' AGENT=deploy-bot CREDENTIAL=prod/db/password`);
  const steps = readSteps(PAGE);
  const outputs = new Map<Step, string>();
  const isUpdate = process.env['UPDATE_PAGE'] === '1';
  /** Runs a block under the heading. What it prints the first time is compared with the page. */
  const run = async (heading: string, index = 0, answers: readonly string[] = []): Promise<string> => {
    const step = steps.filter((each) => each.heading === heading)[index];
    assert.ok(step !== undefined, `${heading} has block ${index}`);
    const printed = tidy(await shell.run(step.commands, { answers })).trimEnd();
    if (outputs.has(step)) return printed;
    outputs.set(step, printed);
    if (!isUpdate)
      assert.equal(withPlaceholders(printed), withPlaceholders(step.output), `${heading}\n${step.commands}`);
    return printed;
  };
  const finish = (): void => {
    const left = steps.filter((step) => !outputs.has(step) && step.heading !== ABOUT_NODES);
    assert.deepEqual(left, [], 'every block ran');
    const file = join(ROOT, PAGE);
    if (isUpdate) writeFileSync(file, withOutput(readFileSync(file, 'utf8'), steps, outputs));
  };
  const newest = (directory: string, beginning: string): string =>
    join(
      directory,
      readdirSync(directory)
        .filter((name) => name.startsWith(beginning))
        .sort()
        .at(-1) ?? 'none',
    );
  return { ...scene, safe, backups, run, finish, newest };
}

test('the blocks of docs/operations.md handle each incident, and print what the page shows', async (t) => {
  const kms = endableScope();
  t.after(kms.end);
  const tokenFile = join(temporaryDirectory(t), 'token');
  writeFileSync(tokenFile, TRANSIT_TOKEN, { mode: 0o600 });
  const transit = `--transit-address '${await startTransit(kms.scope)}' --transit-token-file '${tokenFile}'`;
  const { home, shell, tidy, safe, backups, run, finish, newest } = await openRunbook(t, {});
  const vault = join(home, '.leasehold');
  const getsValue = async (value: string): Promise<void> =>
    assert.equal(await shell.run('leasehold --agent deploy-bot get prod/db/password --reveal 2> /dev/null'), value);
  const nameSlot = async (beginning: string): Promise<void> =>
    void (await shell.run(`SLOT="$(leasehold key slot list --field name | grep '^${beginning}' | tail -n 1)"`));

  await run('Names');
  await run('Start the server');
  await run('Copy the root key');
  await run('Add a recovery slot');
  await nameSlot('recovery');
  for (const index of [0, 1]) await run('Take a backup', index);
  for (const index of [0, 1]) await run('Keep evidence', index);
  await run('Admit an agent', 0);
  await run('Admit an agent', 1, [VALUE, VALUE]);
  await run('Admit an agent', 2);
  await getsValue(VALUE);
  for (const index of [0, 1, 2, 3]) await run('Every day', index);

  // The root key is lost, and there is a copy.
  renameSync(join(vault, 'root.key'), join(home, 'lost.key'));
  await run('The root key is lost', 0);
  assert.match(await shell.run('stop; start'), /WARNING {2}The vault is locked\. .*root key is missing/);
  assert.match(await run('Every day', 0), /status "locked"/);
  await run('The vault is locked');
  await run('The root key is lost', 1);
  assert.equal(tidy(await shell.run('stop; start')), '');
  await getsValue(VALUE);

  // An agent's key is stolen.
  const key = join(home, '.config/leasehold/agents/deploy-bot.pem');
  writeFileSync(join(home, 'stolen.pem'), readFileSync(key), { mode: 0o600 });
  await run("An agent's key is stolen", 0);
  await run("An agent's key is stolen", 1, ['y']);
  const useStolen = `leasehold --agent deploy-bot --key-file '${join(home, 'stolen.pem')}' get prod/db/password --reveal`;
  assert.match(await shell.run(useStolen), /AUTH_FAILED/);
  await getsValue(VALUE);
  await run("An agent's key is stolen", 2);
  await run("An agent's key is stolen", 3, ['a new password', 'a new password']);
  await run("An agent's key is stolen", 4);

  // The agent has a lease, and the thief its token.
  await getsValue('a new password');
  await run('A session or a lease is stolen');
  await run("An agent's key is stolen", 1, ['y']);
  assert.equal(await run('A session or a lease is stolen'), 'No matching leases that you may list.');

  // The administrator's token is stolen.
  writeFileSync(join(home, 'stolen.token'), readFileSync(join(vault, 'daemon.token')), { mode: 0o600 });
  await run("The administrator's token is stolen", 0);
  assert.match(
    await shell.run(`leasehold --token-file '${join(home, 'stolen.token')}' list`),
    /This administrator token is not valid/,
  );
  await run("The administrator's token is stolen", 1, ['y']);
  for (const index of [2, 3, 4, 5]) await run("The administrator's token is stolen", index);

  // The passphrase is forgotten.
  await run('Add a recovery slot');
  await run('Remove a key slot', 0, ['y']);
  await nameSlot('recovery');
  await run('Take a backup', 1);

  // The machine is lost.
  await shell.run('stop');
  renameSync(vault, join(home, 'lost-machine'));
  const [rootKey, backup] = [newest(safe, 'root.key-'), newest(backups, 'leasehold-')];
  const restoring = readSteps('docs/backup.md').filter(({ heading }) => heading === 'Restoring');
  assert.equal(restoring.length, 2);
  for (const [index, directory] of [vault, join(home, 'second')].entries()) {
    await shell.run(`NEW_VAULT='${directory}' BACKUP='${backup}' ROOT_KEY='${rootKey}'`);
    assert.match(await shell.run(restoring[index]?.commands ?? ''), /The chain is valid/);
  }
  await run('The root key is lost', 1);
  await run('Start the server');
  await run('Keep evidence', 0);
  assert.equal(await run('Every day', 1), 'true');
  await getsValue('a new password');

  // An earlier database is put back.
  await shell.run('stop');
  writeFileSync(join(home, 'earlier.db'), readFileSync(join(vault, 'leasehold.db')), { mode: 0o600 });
  await shell.run('start');
  await shell.run("printf 'a key' | leasehold put prod/new - --field version");
  await run('Keep evidence', 1);
  await shell.run('stop');
  renameSync(join(vault, 'leasehold.db'), join(home, 'newer.db'));
  renameSync(join(home, 'earlier.db'), join(vault, 'leasehold.db'));
  assert.match(await shell.run('start'), /lost entries/);
  assert.match(await run('Every day', 0), /status "rolled_back"/);
  await run('The audit log was truncated, or the database rolled back', 0);
  await run('The audit log was truncated, or the database rolled back', 1);
  await shell.run('stop');
  await run('The audit log was truncated, or the database rolled back', 2);
  assert.ok(readdirSync(newest(safe, 'vault-')).includes('leasehold.db'));
  await shell.run('start');
  await run('The audit log was truncated, or the database rolled back', 3, ['y']);
  assert.equal(await run('Every day', 0), 'ok');
  assert.match(await run('Every day', 1), /^false\n/);
  for (const index of [0, 1]) await run('Keep evidence', index);
  assert.equal(await run('Every day', 1), 'true');

  // The disk is full.
  await shell.run('stop');
  const supervised = await launchSupervised(t, vault, NO_ROOM);
  await supervised.ready;
  supervised.arm();
  assert.match(
    await shell.run('leasehold --agent deploy-bot get prod/db/password --reveal'),
    /could not record the request/,
  );
  assert.match(await run('Every day', 0), /status "failing"/);
  supervised.disarm();
  await shell.run('until leasehold status > /dev/null 2>&1; do sleep 0.2; done');
  for (const index of [0, 1]) await run('The disk is full', index);
  supervised.child.kill('SIGTERM');
  await supervised.ended;

  // Transit does not respond, and the only other slot is the passphrase.
  await shell.run(`start ${transit}`);
  await shell.run('leasehold key slot add bao --kind transit --key leasehold; leasehold key slot remove file --yes');
  renameSync(join(vault, 'root.key'), join(home, 'second-lost.key'));
  for (const copy of readdirSync(safe).filter((name) => name.startsWith('root.key-')))
    renameSync(join(safe, copy), join(home, copy));
  await kms.end();
  await shell.run('RECOVERY="$SLOT" SLOT=bao');
  await run('The KMS cannot be reached');
  await getsValue('a new password');
  assert.match(await shell.run(`stop; start ${transit}`), /WARNING .*bao: Transit cannot be reached/);
  await shell.run('SLOT="$RECOVERY"');
  assert.equal(await run('The vault is locked'), 'ok');
  await getsValue('a new password');

  // The root key is lost, and there is no copy.
  await run('The root key is lost', 2);
  await run('Copy the root key');
  await run('The root key is stolen', 0);
  await run('The root key is stolen', 1);
  await shell.run(
    'until leasehold audit list --event key.retire --field seq 2> /dev/null | grep -q .; do sleep 0.2; done',
  );
  await run('The root key is stolen', 2);
  await run('The root key is stolen', 3);
  assert.equal(tidy(await shell.run('stop; start')), '', 'the new slot opens the vault');
  await getsValue('a new password');
  await shell.run('stop');
  assert.equal(tidy(await shell.run('jobs -p')), '');
  finish();
});
