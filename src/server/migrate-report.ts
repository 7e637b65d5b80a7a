/** The output of a migration: progress, at most a line per second, and the summary with the next steps. */
import { existsSync } from 'node:fs';
import { dataDirPaths } from '../platform/data-dir-paths.ts';
import { quoteForShell } from '../platform/shell-quoting.ts';
import { CALLED_AS } from './command-lines.ts';
import { describeLocation, type VaultLocation } from './locations.ts';
import type { MigrationRequest, MigrationResult } from './migrate.ts';

const LINE_INTERVAL_MS = 1000;

const formatCount = (n: number): string => n.toLocaleString('en-US');

/** Writes the progress of a table, at most a line per second. */
export function reporter(write: (line: string) => void): (what: string, rows: number, of: number) => void {
  let writtenAt = performance.now();
  return (what, rows, of) => {
    if (performance.now() - writtenAt < LINE_INTERVAL_MS) return;
    writtenAt = performance.now();
    write(`  ${what.padEnd(20)} ${formatCount(rows)} of ${formatCount(of)}`);
  };
}

export function formatSummary(
  { from, to, rootKeyFile }: MigrationRequest,
  { counts, verification }: MigrationResult,
): string {
  const rows = [...counts].map(([table, count]) => `  ${table.padEnd(20)} ${formatCount(count)}`);
  const chain = verification.isValid
    ? `The chain is valid: ${formatCount(verification.entries)} entries, the last of ${verification.lastEntry ?? 'none'}.`
    : `The chain is broken at entry ${verification.breakAtEntry}, as it was before: ${verification.reason}.`;
  return [
    `Migrated to ${describeLocation(to)}:`,
    '',
    ...rows,
    '',
    chain,
    '',
    'Keys are not in the database and were not copied:',
    ...keysOf(from, to, rootKeyFile),
    '',
    'Next:',
    '',
    ...archiveSteps(from),
    ...start(to, rootKeyFile),
    '',
  ].join('\n');
}

/** The root key, and the private keys of agents whose key pairs the service generated. */
function keysOf(from: VaultLocation, to: VaultLocation, rootKeyFile: string): string[] {
  const [home] = [from, to].flatMap((location) => (location.kind === 'directory' ? [location.dir] : []));
  const isApart = from.kind === 'directory' && to.kind === 'directory';
  return [
    `  root key             ${rootKeyFile}: every node needs it, in its data directory or with --root-key-file`,
    home === undefined
      ? "  agents' keys         in agents/ of the data directory of the node that generated them"
      : `  agents' keys         ${dataDirPaths(home).agentsDir}${isApart ? `: copy it to ${to.dir}` : ''}`,
    ...(to.kind === 'directory' && !isApart
      ? ['                       other nodes have the keys that they generated: copy each missing agents/NAME']
      : []),
  ];
}

function archiveSteps(from: VaultLocation): string[] {
  if (from.kind === 'database') {
    return ['  Start no node on the old database. Keep it until the new one works, then drop it.'];
  }
  const { databaseFile } = dataDirPaths(from.dir);
  const files = [databaseFile, `${databaseFile}-wal`, `${databaseFile}-shm`].filter((file) => existsSync(file));
  return [
    '  Rename the old database, so that no service starts on it by mistake:',
    ...files.map(
      (file) => `    mv ${quoteForShell(file)} ${quoteForShell(file.replace(databaseFile, `${databaseFile}.moved`))}`,
    ),
  ];
}

function start(to: VaultLocation, rootKeyFile: string): string[] {
  if (to.kind === 'database') {
    return [
      '  Start the nodes, each with a separate data directory; URL.txt contains the URL of the database:',
      `    ${CALLED_AS.server} --data-dir DIR --database-file URL.txt`,
    ];
  }
  const isDefault = rootKeyFile === dataDirPaths(to.dir).rootKeyFile;
  return [
    '  Start the service, without --database:',
    `    ${CALLED_AS.server} --data-dir ${quoteForShell(to.dir)}${isDefault ? '' : ` --root-key-file ${quoteForShell(rootKeyFile)}`}`,
  ];
}
