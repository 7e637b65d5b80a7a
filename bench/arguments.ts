// What the bench is called with.

import { parseArgs } from 'node:util';

export const USAGE = `npm run bench [-- FLAGS]

Measures what the issues require, writes docs/performance.md with its figures and plots, and exits 1 where a required figure is
missed. It takes 20 minutes of a machine that does nothing else.

  --quick          a minute: no curves, nothing written
  --only PART      one of start, retrieval, writing, log, decision, curves, large
  --curves=no      all but the curves; --curves=yes with --quick
  --postgres       several nodes on PostgreSQL instead, 4 minutes; with --quick in one
  --json FILE      the figures there too
  --write FOLDER   the report there instead of docs, where a performance.md with the marks lies
  --trial          shows in a minute that every part works; its figures mean nothing
`;

export interface BenchArguments {
  readonly quick: boolean;
  readonly trial: boolean;
  readonly help: boolean;
  readonly postgres: boolean;
  readonly only?: string | undefined;
  readonly curves?: string | undefined;
  readonly json?: string | undefined;
  readonly write?: string | undefined;
}

/** @throws where a flag is none of these, in words for who typed it */
export function parseArguments(words: readonly string[]): BenchArguments {
  const { values } = parseArgs({
    args: [...words],
    options: {
      quick: { type: 'boolean', default: false },
      trial: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
      postgres: { type: 'boolean', default: false },
      only: { type: 'string' },
      curves: { type: 'string' },
      json: { type: 'string' },
      write: { type: 'string' },
    },
  });
  const { curves } = values;
  if (curves !== undefined && curves !== 'yes' && curves !== 'no') throw new Error('--curves takes yes or no');
  return values;
}
