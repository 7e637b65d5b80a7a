// Every block of the pages for operators, pasted into an interactive shell with all names set: twice on a healthy
// vault, while the server is down, and while the vault is locked. Afterwards nothing is lost.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blocksOf, openPasteSandbox } from './paste-sandbox.ts';

const PAGES = ['docs/operations.md', 'docs/keys.md', 'docs/backup.md'];
const SHELLS: readonly (readonly [string, readonly string[]])[] = [
  ['bash', ['bash', '--noprofile', '--norc', '--noediting']],
  ['sh', ['dash', '-i']],
];

for (const [name, program] of SHELLS) {
  test(`each block, pasted twice into ${name} on a healthy vault, loses nothing`, async (t) => {
    const sandbox = await openPasteSandbox(t);
    // ORDER: the server belongs to the shell into which the blocks are pasted, because some of them stop it.
    await sandbox.stop();
    const shell = await sandbox.namedShell(sandbox.variables, program);
    await shell.run('start');
    for (const block of blocksOf(PAGES)) {
      const before = sandbox.takeSnapshot();
      const first = await sandbox.paste(shell, block);
      const between = sandbox.takeSnapshot();
      const second = await sandbox.paste(shell, block);
      const what = `${block.text}\n${first}\n${second}`;
      sandbox.assertFilesKept(before, what);
      sandbox.assertFilesKept(between, what);
      if (block.heading === 'Names') await shell.run('unset -f leasehold');
      if ((await sandbox.status()) === null) await shell.run('start');
      await sandbox.assertVaultKept(what);
    }
    await shell.run('stop');
    await sandbox.assertVaultKept('a restart');
    await sandbox.assertBackupsOpen();
  });
}

test('each block, pasted while the server is down, loses nothing', async (t) => {
  const sandbox = await openPasteSandbox(t);
  await sandbox.stop();
  for (const block of blocksOf(PAGES)) {
    const before = sandbox.takeSnapshot();
    const printed = await sandbox.paste(sandbox.keeper, block);
    sandbox.assertFilesKept(before, `${block.text}\n${printed}`);
    if (block.heading === 'Names') await sandbox.keeper.run('unset -f leasehold');
    if ((await sandbox.status()) !== null) await sandbox.stop();
  }
  await sandbox.assertVaultKept('all blocks');
  await sandbox.assertBackupsOpen();
});

test('each block, pasted while the vault is locked, loses nothing', async (t) => {
  const sandbox = await openPasteSandbox(t);
  const shell = await sandbox.namedShell(sandbox.variables);
  for (const block of blocksOf(PAGES)) {
    const before = sandbox.takeSnapshot();
    if ((await sandbox.status()) === 'ok') await sandbox.lock();
    const printed = await sandbox.paste(shell, block);
    sandbox.assertFilesKept(before, `${block.text}\n${printed}`);
    if (block.heading === 'Names') await shell.run('unset -f leasehold');
    assert.ok(['ok', 'locked'].includes((await sandbox.status()) ?? 'down'), block.text);
  }
  await sandbox.assertVaultKept('all blocks');
  await sandbox.assertBackupsOpen();
});
