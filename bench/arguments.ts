// The command line of `npm run bench`.

import { parseArgs } from 'node:util';

export const USAGE = `npm run bench [-- FLAGS]

Measures this machine and prints each figure next to the committed one of docs/performance.json. A full run takes about
fifteen minutes of an otherwise idle machine.

  --quick          short rounds and no large vault, about a minute
  --trial          the shortest run that executes every part; its figures mean nothing
  --postgres       several nodes on PostgreSQL instead of one on SQLite
  --only PART      one of start, retrieval, use, write, log, proofs, decision, large, console; with
                   --postgres one of cluster, failover, approvals, proofs
  --json FILE      put the figures into FILE, for example docs/performance.json
  --page           measure nothing; write the table of docs/performance.md from docs/performance.json
  --help           print this text
`;

export interface BenchArguments {
  readonly quick: boolean;
  readonly trial: boolean;
  readonly postgres: boolean;
  readonly page: boolean;
  readonly help: boolean;
  readonly only?: string | undefined;
  readonly json?: string | undefined;
}

/** @throws Error for an unknown flag */
export function parseArguments(words: readonly string[]): BenchArguments {
  const flag = { type: 'boolean', default: false } as const;
  return parseArgs({
    args: [...words],
    options: {
      quick: flag,
      trial: flag,
      postgres: flag,
      page: flag,
      help: flag,
      only: { type: 'string' },
      json: { type: 'string' },
    },
  }).values;
}
