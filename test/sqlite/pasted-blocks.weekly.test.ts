// Every block of the pages for operators, pasted into an interactive bash with all names set, twice on a healthy vault:
// afterwards nothing is lost.

import { test } from 'node:test';
import { openPasteSandbox, writingBlocks } from './paste-sandbox.ts';

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
