/**
 * Runs the test files that it is given one after the other in this process. Each is a separate test, so that its hooks
 * run when it ends and its servers do not outlive it. Each reports the processor seconds that it took, and those of
 * its child processes.
 */
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { processorSeconds } from './processor.ts';

const ROOT = path.resolve(import.meta.dirname, '..');

for (const file of process.argv.slice(2)) {
  test(path.relative(ROOT, file), async (t: TestContext) => {
    const before = processorSeconds();
    t.after(() => t.diagnostic(`processor ${(processorSeconds() - before).toFixed(2)}`));
    await import(pathToFileURL(file).href);
  });
}
