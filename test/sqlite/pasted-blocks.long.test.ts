// Every block of the pages for operators can be copied alone: its allowed content, and its effect in a shell without
// set names. test/sqlite/pasted-blocks.weekly.test.ts pastes them at the wrong moment, and twice.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blocksOf, openPasteSandbox, PAGES, writingBlocks } from './paste-sandbox.ts';

/** Pages with blocks of the same kind, whose shells and names differ. */
const RELATED = [...PAGES, 'docs/cluster.md', 'docs/audit.md'];

/** Commands that no block may contain, because they delete, replace or continue after an error. */
const FORBIDDEN: readonly (readonly [string, RegExp])[] = [
  ['deletes a file', /(?:^|[\s;|&(])(?:rm|shred|truncate|unlink|rmdir)\s/m],
  ['replaces a file', /(?:^|[\s;|&(])mv (?!-n )/m],
  ['copies onto a name that may exist', /^\s*cp (?!.*\.new\/?")/m],
  ['answers the question of a command that destroys', /\s(?:--yes|-y)\b/],
  ['reads a file that may be incomplete, NAME.new', /\bls "\$[A-Z]+"\/\S*\*(?=[\s)])/m],
];

/** A name of the pages that the block uses before it has checked that the name is set. */
function uncheckedName(text: string): string | null {
  const used = [...text.matchAll(/\$\{?([A-Z][A-Z_]+)(:\?)?/g)].filter(([, name]) => name !== 'HOME');
  const firsts = new Map([...used].reverse().map(([, name = '', check]) => [name, check]));
  return [...firsts].find(([, check]) => check === undefined)?.[0] ?? null;
}

/** Whether the block is a subshell that ends at its first error. */
const isGuarded = (text: string): boolean => /^\( set -eu/.test(text) && /^\)/m.test(text);

test('no block deletes or replaces a file, answers a question, or does a second thing after an error', () => {
  const blocks = blocksOf(PAGES);
  assert.ok(blocks.length > 45, `${blocks.length} blocks`);
  for (const { page, heading, text } of blocks) {
    const where = `${page}, ${heading}\n${text}`;
    for (const [what, pattern] of FORBIDDEN) assert.doesNotMatch(text, pattern, `${what}: ${where}`);
    if (heading === 'Names') continue;
    assert.equal(uncheckedName(text), null, where);
    const commands = text.replaceAll('\\\n', ' ').split('\n').length;
    assert.ok(commands === 1 || isGuarded(text), `one command, or a subshell that ends at the first error: ${where}`);
    if (/ > /.test(text)) assert.match(text, / > "[^"\n]*\.new"/, `writes onto a name: ${where}`);
    assert.ok(!(/\bunlock\b/.test(text) && /\block\b/.test(text)), where);
  }
  for (const { page, heading, text } of blocksOf(RELATED)) {
    const [[, deletes] = [], [, replaces] = []] = FORBIDDEN;
    assert.ok(deletes && replaces);
    assert.doesNotMatch(text, deletes, `${page}, ${heading}\n${text}`);
    assert.doesNotMatch(text, replaces, `${page}, ${heading}\n${text}`);
  }
});

test('each block that writes, pasted alone where no name is set, loses nothing of a healthy vault', async (t) => {
  const sandbox = await openPasteSandbox(t);
  const shell = sandbox.newShell({});
  for (const block of writingBlocks()) {
    const before = sandbox.takeSnapshot();
    await sandbox.paste(shell, block);
    sandbox.assertFilesKept(before, block.text);
    assert.equal(await sandbox.status(), 'ok', block.text);
    // The definitions of the block end with its shell, as they do for the next block that is pasted alone.
    if (block.heading === 'Names') await shell.run('unset -f start stop; unset VAULT');
  }
  await sandbox.assertVaultKept('all blocks');
});
