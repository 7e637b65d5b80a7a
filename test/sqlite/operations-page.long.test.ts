/**
 * docs/operations.md, executed as written: its shell blocks run one after the other in one shell, and each prints what
 * the page shows. The test adds what no command can do: it fills the disk, and stops the KMS.
 * `UPDATE_PAGE=1 npm test -- --tests-only test/sqlite/operations-page.long.test.ts` writes the output to the page.
 * test/postgres/cluster-page.test.ts runs the block about nodes.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ROOT } from '../conventions/source.ts';
import { withPlaceholders } from '../e2e/markdown.ts';
import { openPage, readSteps, type Step } from '../e2e/page.ts';
import { launchSupervised, type Supervised } from '../faults/supervised.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { startTransit, TRANSIT_TOKEN } from '../kit/key-services.ts';

const PAGE = 'docs/operations.md';
const ABOUT_NODES = 'A node is lost';
const WRITES = ['write', 'pwrite64', 'ftruncate', 'openat', 'mkdir', 'rename'];
const NO_ROOM = { calls: WRITES, error: 'ENOSPC', after: 0, times: null } as const;

/** A scope that ends before its test does. */
function endableScope() {
  const cleanUps: (() => unknown)[] = [];
  const scope: Scope = { after: (cleanUp) => void cleanUps.push(cleanUp) };
  return { scope, end: async () => void (await Promise.all(cleanUps.splice(0).map((cleanUp) => cleanUp()))) };
}

/** The page with the output of its steps. */
function withOutput(page: string, steps: readonly Step[]): string {
  let at = 0;
  return steps.reduce((text, { commands, output }) => {
    const block = `\`\`\`sh\n${commands}\n\`\`\`\n`;
    at = text.indexOf(block, at) + block.length;
    const behind = text.slice(at).replace(/^\n```text\n[\s\S]*?\n```\n/, '');
    return `${text.slice(0, at)}${output === '' ? '' : `\n\`\`\`text\n${output}\n\`\`\`\n`}${behind}`;
  }, page);
}

test('the commands of docs/operations.md handle each incident, and print what it shows', async (t) => {
  const kms = endableScope();
  t.after(kms.end);
  const tokenFile = join(temporaryDirectory(t), 'token');
  writeFileSync(tokenFile, TRANSIT_TOKEN, { mode: 0o600 });
  const variables = { BAO_ADDRESS: await startTransit(kms.scope), BAO_TOKEN_FILE: tokenFile };
  const { home, shell, tidy } = await openPage(t, variables);
  let supervised: Supervised | null = null;

  /** What happens before a block that contains the text. */
  const happens: Readonly<Record<string, () => unknown>> = {
    'the disk has no room.': async () => {
      await shell.run('stop');
      supervised = await launchSupervised(t, join(home, '.leasehold'), NO_ROOM);
      await supervised.ready;
      supervised.arm();
    },
    'Space was freed.': () => supervised?.disarm(),
    'start --transit-address': async () => {
      supervised?.child.kill('SIGTERM');
      await supervised?.ended;
      if (supervised !== null) await shell.run('start');
      supervised = null;
    },
    'Transit does not respond.': kms.end,
  };

  const ran: Step[] = [];
  const isUpdate = process.env['UPDATE_PAGE'] === '1';
  for (const { heading, commands, output } of readSteps(PAGE).filter((step) => step.heading !== ABOUT_NODES)) {
    for (const [text, action] of Object.entries(happens)) if (commands.includes(text)) await action();
    const printed = tidy(await shell.run(commands)).trimEnd();
    if (!isUpdate) assert.equal(withPlaceholders(printed), withPlaceholders(output), `${heading}\n${commands}`);
    ran.push({ heading, commands, output: printed });
  }
  assert.equal(await shell.run('jobs -p'), '', 'the last block stops the service');
  const file = join(ROOT, PAGE);
  if (isUpdate) writeFileSync(file, withOutput(readFileSync(file, 'utf8'), ran));
});
