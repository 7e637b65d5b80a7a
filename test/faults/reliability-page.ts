/** Writes the figures of a run into docs/reliability.md, between its two markers. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { wayOfFaults } from './supervised.ts';
import type { Figures } from './torture-activities.ts';

const PAGE = join(import.meta.dirname, '../../docs/reliability.md');
const [BEGIN, END] = ['<!-- figures: npm run torture writes them -->', '<!-- end of the figures -->'];

export function writeFigures(figures: Figures, elapsedMs: number, seed: number): void {
  const page = readFileSync(PAGE, 'utf8');
  const [start, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (start === -1 || end < start) throw new Error(`${PAGE} lacks its markers`);
  writeFileSync(PAGE, page.slice(0, start) + BEGIN + describe(figures, elapsedMs, seed) + page.slice(end));
}

function describe(figures: Figures, elapsedMs: number, seed: number): string {
  const minutes = Math.round(elapsedMs / 60_000);
  const day = new Date().toISOString().slice(0, 10);
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  const way = wayOfFaults() === 'kernel' ? 'failed by the kernel' : 'failed in the process';
  const rows = Object.entries(figures).map(([what, count]) => `| ${what} | ${count.toLocaleString('en')} |`);
  return `
${minutes} minutes on ${day} at commit ${commit}, on ${availableParallelism()} cores, with seed ${seed}; calls ${way}:

| what | how many |
|---|---|
${rows.join('\n')}
| **acknowledged changes lost** | **0** |
| **false successes, wrong values, silent new vaults** | **0** |
| **changes of the log not found at their place** | **0** |

`;
}
