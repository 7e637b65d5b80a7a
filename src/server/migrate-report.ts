/** What a move says: how far it is, at most a line a second, and in the end what was moved and what to do next. */
import { existsSync } from 'node:fs';
import { layOut } from '../platform/data-dir-paths.ts';
import { CALLED_AS } from './errors.ts';
import { describePlace, type VaultLocation } from './locations.ts';
import type { MigrationResult, Move } from './migrate.ts';

const LINE_EVERY_MS = 1000;

const formatCount = (n: number): string => n.toLocaleString('en-US');

/** Writes how far it is, now and then. */
export function reporter(write: (line: string) => void): (what: string, rows: number, of: number) => void {
  let saidAt = performance.now();
  return (what, rows, of) => {
    if (performance.now() - saidAt < LINE_EVERY_MS) return;
    saidAt = performance.now();
    write(`  ${what.padEnd(20)} ${formatCount(rows)} of ${formatCount(of)}`);
  };
}

export function formatSummary(
  { from, to, rootKeyFile }: Move,
  { wasDone, counts, verification }: MigrationResult,
): string {
  const rows = [...counts].map(([table, count]) => `  ${table.padEnd(20)} ${formatCount(count)}`);
  const chain = verification.isValid
    ? `The chain is valid: ${formatCount(verification.entries)} entries, the last of ${verification.lastEntry ?? 'none'}.`
    : `The chain is broken at entry ${verification.breakAtEntry}, as it was before: ${verification.reason}.`;
  return [
    wasDone ? `It was moved already: ${describePlace(to)}.` : `Moved into ${describePlace(to)}:`,
    ...(wasDone ? [] : ['', ...rows, '']),
    chain,
    '',
    'Keys are in no database and were not moved:',
    ...keysOf(from, to, rootKeyFile),
    '',
    'Next:',
    '',
    ...archiveSteps(from),
    ...start(to, rootKeyFile),
    '',
  ].join('\n');
}

/** The root key, and the private keys of agents whose pairs were made by the service. */
function keysOf(from: VaultLocation, to: VaultLocation, rootKeyFile: string): string[] {
  const [home] = [from, to].flatMap((place) => (place.kind === 'directory' ? [place.dir] : []));
  const isApart = from.kind === 'directory' && to.kind === 'directory';
  return [
    `  root key             ${rootKeyFile}: every node needs it, in its data directory or by --root-key-file`,
    home === undefined
      ? "  agents' keys         in agents/ of the data directory of the node that made each of them"
      : `  agents' keys         ${layOut(home).agentsDir}, where there are any${isApart ? `: copy them to ${to.dir}` : ''}`,
    ...(to.kind === 'directory' && !isApart
      ? ['                       those that other nodes made lie with them: copy each agents/NAME that is missing']
      : []),
  ];
}

function archiveSteps(from: VaultLocation): string[] {
  if (from.kind === 'database') {
    return ['  Start no node on the old database any more; keep it until you are sure, then drop it.'];
  }
  const { databaseFile } = layOut(from.dir);
  const files = [databaseFile, `${databaseFile}-wal`, `${databaseFile}-shm`].filter((file) => existsSync(file));
  return [
    '  Put the old database away, so that nobody starts it by mistake:',
    ...files.map((file) => `    mv '${file}' '${file.replace(databaseFile, `${databaseFile}.moved`)}'`),
  ];
}

function start(to: VaultLocation, rootKeyFile: string): string[] {
  if (to.kind === 'database') {
    return [
      '  Start the nodes, each with a data directory of its own; URL.txt holds the URL of the database:',
      `    ${CALLED_AS.server} --data-dir DIR --database-file URL.txt`,
    ];
  }
  const isThere = rootKeyFile === layOut(to.dir).rootKeyFile;
  return [
    '  Start the service, without --database:',
    `    ${CALLED_AS.server} --data-dir '${to.dir}'${isThere ? '' : ` --root-key-file '${rootKeyFile}'`}`,
  ];
}
