// `npm run bench` measures what issue 2 requires, on whatever machine, and exits 1 where a figure is missed.
// `npm run bench -- --quick` takes half a minute instead of two; `-- --json FILE` writes the figures there.

import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { judge, type Measured, machine, toDetails, toTable } from './report.ts';
import { measureRetrieval } from './retrieval.ts';
import { openScope } from './scope.ts';
import { measureStart } from './startup.ts';
import { measureVerification } from './verification.ts';

const FULL = { rounds: 7, seconds: 3, runs: 5, starts: 5 };
const QUICK = { rounds: 5, seconds: 1, runs: 3, starts: 3 };

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false }, json: { type: 'string' } } });
const scope = openScope();
const say = (line: string): void => void process.stderr.write(`${line}\n`);

async function measure(): Promise<Measured> {
  const { starts, runs, ...rounds } = values.quick ? QUICK : FULL;
  const start = await measureStart(scope, say, starts);
  const { figures: retrieval, service } = await measureRetrieval(scope, say, rounds);
  const verification = await measureVerification(scope, say, service, runs);
  return { retrieval, verification, start };
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => void scope.end().finally(() => process.exit(1)));
}
try {
  const measured = await measure();
  const figures = judge(measured);
  console.log(`\n${machine()}\n\n${toTable(figures)}\n\n${toDetails(measured)}`);
  if (values.json !== undefined) {
    const file = resolve(process.env['INIT_CWD'] ?? '.', values.json);
    writeFileSync(file, `${JSON.stringify({ machine: machine(), figures, ...measured }, null, 2)}\n`);
  }
  process.exitCode = figures.every(({ isMet }) => isMet) ? 0 : 1;
} finally {
  await scope.end();
}
