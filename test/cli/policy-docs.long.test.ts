// docs/policies.md, executed as written: each shell block prints the output on the page.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readBlocks } from '../e2e/markdown.ts';
import { Shell } from '../e2e/shell.ts';
import { COMMAND, newHome } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';

const PAGE = join(import.meta.dirname, '../../docs/policies.md');

test('the commands of docs/policies.md print what the page shows', async (t) => {
  const service = await startTestService(t);
  const home = newHome(t);
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: home.path,
    LEASEHOLD_ADDR: service.address,
    LEASEHOLD_TOKEN: service.adminToken,
  };
  const shell = new Shell(t, temporaryDirectory(t), { cwd: home.path, env });
  await shell.run(`leasehold() { ${COMMAND.map((word) => `'${word}'`).join(' ')} "$@"; }`);
  const blocks = readBlocks(readFileSync(PAGE, 'utf8'));
  const steps = blocks.flatMap(({ language, text }, at) =>
    language === 'sh' ? [{ commands: text, output: blocks[at + 1]?.text ?? '' }] : [],
  );
  assert.equal(steps.length, 7);
  for (const { commands, output } of steps) assert.equal(await shell.run(commands), output, commands);
});
