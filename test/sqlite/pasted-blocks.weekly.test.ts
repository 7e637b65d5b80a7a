// Every block of the pages for operators, pasted with all names set: twice on a healthy vault, while the server is
// down, and into another shell while the vault is locked. Afterwards nothing is lost.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPasteSandbox, writingBlocks } from './paste-sandbox.ts';

test('each block, pasted while the server is down, loses nothing', async (t) => {
  const sandbox = await openPasteSandbox(t);
  await sandbox.stop();
  for (const block of writingBlocks()) {
    const before = sandbox.takeSnapshot();
    const printed = await sandbox.paste(sandbox.keeper, block);
    sandbox.assertFilesKept(before, `${block.text}\n${printed}`);
    if ((await sandbox.status()) !== null) await sandbox.stop();
  }
  await sandbox.assertVaultKept('all blocks');
  await sandbox.assertBackupsOpen();
});

test('each block, pasted into dash while the vault is locked, loses nothing', async (t) => {
  const sandbox = await openPasteSandbox(t);
  const shell = await sandbox.namedShell(sandbox.variables, ['dash', '-i']);
  for (const block of writingBlocks()) {
    const before = sandbox.takeSnapshot();
    if ((await sandbox.status()) === 'ok') await sandbox.lock();
    const printed = await sandbox.paste(shell, block);
    sandbox.assertFilesKept(before, `${block.text}\n${printed}`);
    assert.ok(['ok', 'locked'].includes((await sandbox.status()) ?? 'down'), block.text);
  }
  await sandbox.assertVaultKept('all blocks');
  await sandbox.assertBackupsOpen();
});

test('each block, pasted twice on a healthy vault, loses nothing', async (t) => {
  const sandbox = await openPasteSandbox(t);
  const { keeper } = sandbox;
  for (const block of writingBlocks()) {
    const before = sandbox.takeSnapshot();
    const first = await sandbox.paste(keeper, block);
    const between = sandbox.takeSnapshot();
    const second = await sandbox.paste(keeper, block);
    const what = `${block.text}\n${first}\n${second}`;
    sandbox.assertFilesKept(before, what);
    sandbox.assertFilesKept(between, what);
    await sandbox.assertVaultKept(what);
  }
  await sandbox.stop();
  await sandbox.assertVaultKept('a restart');
  await sandbox.assertBackupsOpen();
});
