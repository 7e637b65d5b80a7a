/** The output of a migration: progress, at most a line per second, and the summary with the next steps. */
import { existsSync } from 'node:fs';
import { dataDirPaths } from '../platform/data-dir-paths.ts';
import { quoteForShell } from '../platform/shell-quoting.ts';
import { CALLED_AS } from './command-lines.ts';
import { describeLocation } from './locations.ts';
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
  { from, to, configuration }: MigrationRequest,
  { counts, verification }: MigrationResult,
): string {
  const chain = verification.isValid
    ? `The chain is valid: ${formatCount(verification.entries)} entries, the last of ${verification.lastEntry ?? 'none'}.`
    : `The chain is broken at entry ${verification.breakAtEntry}, as it was before: ${verification.reason}.`;
  const rootKeyFile = configuration.rootKeyFile ?? dataDirPaths(configuration.dataDir).rootKeyFile;
  const hasRootKey = existsSync(rootKeyFile);
  const opener = hasRootKey ? `the root key is in ${rootKeyFile}` : 'what opens the key slots stays where it is';
  return [
    `Migrated to ${describeLocation(to)}:`,
    '',
    ...[...counts].map(([table, count]) => `  ${table.padEnd(20)} ${formatCount(count)}`),
    '',
    chain,
    '',
    `Keys were not copied: ${opener}, and the keys that a node made for agents are in its agents/.`,
    '',
    'Next:',
    '',
    ...(from.kind === 'directory' ? stepsToDatabase(from.dir) : []),
    ...(to.kind === 'directory' ? stepsToDirectory(to.dir, hasRootKey ? rootKeyFile : null) : []),
    '',
  ].join('\n');
}

function stepsToDatabase(dir: string): string[] {
  const { databaseFile } = dataDirPaths(dir);
  const files = ['', '-wal', '-shm'].filter((suffix) => existsSync(databaseFile + suffix));
  return [
    '  Rename the old database, so that no service starts on it by mistake:',
    ...files.map(
      (suffix) => `    mv ${quoteForShell(databaseFile + suffix)} ${quoteForShell(`${databaseFile}.moved${suffix}`)}`,
    ),
    '  Start the nodes, each with the root key and a separate data directory; URL.txt contains the URL of the database:',
    `    ${CALLED_AS.server} --data-dir DIR --database-file URL.txt`,
  ];
}

function stepsToDirectory(dir: string, rootKeyFile: string | null): string[] {
  const isDefault = rootKeyFile === null || rootKeyFile === dataDirPaths(dir).rootKeyFile;
  return [
    '  Start no node on the old database. Keep it until the new one works, then drop it.',
    '  Start the service, without --database:',
    `    ${CALLED_AS.server} --data-dir ${quoteForShell(dir)}${isDefault ? '' : ` --root-key-file ${quoteForShell(rootKeyFile)}`}`,
  ];
}
