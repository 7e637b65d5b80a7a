/** The output of a restore: progress, restored and checked rows, and the next steps. */

import { quoteForShell } from '../platform/installation.ts';
import { dataDirPaths } from '../platform/paths.ts';
import { SERVER_COMMAND } from './flag-table.ts';
import type { RestoreResult } from './restore.ts';
import type { RestoreRequest } from './restore-request.ts';
import { describeLocation } from './restore-target.ts';

const LINE_INTERVAL_MS = 1000;

const formatCount = (n: number): string => n.toLocaleString('en-US');

/** Writes the progress of a table, at most one line per second. */
export function reporter(write: (line: string) => void): (what: string, rows: number, of: number) => void {
  let writtenAt = performance.now();
  return (what, rows, of) => {
    if (performance.now() - writtenAt < LINE_INTERVAL_MS) return;
    writtenAt = performance.now();
    write(`  ${what.padEnd(20)} ${formatCount(rows)} of ${formatCount(of)}`);
  };
}

export function formatRestore(request: RestoreRequest, result: RestoreResult): string {
  const { summary, verification, decrypted, findings, agentKeysWritten, rollback } = result;
  const { header, totals } = summary;
  const chain = verification.isValid
    ? `The chain is valid: ${formatCount(verification.entries)} entries, the last one about this restore.`
    : `The chain is broken at entry ${verification.breakAtEntry}, as in the backup: ${verification.reason}.`;
  return [
    `Restored to ${describeLocation(request.to)}, as of ${header.created_at}, entry ${header.log_end?.seq ?? 0}:`,
    '',
    ...Object.entries(totals.rows).map(([table, count]) => `  ${table.padEnd(20)} ${formatCount(count)}`),
    '',
    chain,
    `${formatCount(decrypted)} values of a sample of credentials were decrypted.`,
    ...findings.map((finding) => `WARNING  Accepted: ${finding}.`),
    ...toKeysLines(request, totals.agent_keys, agentKeysWritten),
    ...(rollback === null ? [] : [`WARNING  ${rollback}`]),
    '',
    'Next: start the server:',
    `  ${SERVER_COMMAND} ${toFlags(request)}${rollback === null ? '' : ' --accept-rollback'}`,
    '',
  ].join('\n');
}

function toKeysLines({ dataDir }: RestoreRequest, inBackup: number, written: number): string[] {
  if (inBackup === 0) return ['The backup has no private keys of agents.'];
  if (dataDir === null) {
    return [
      `The private keys of ${inBackup} agents were not restored. To restore them too, give --data-dir with --database.`,
    ];
  }
  const line = `The private keys of ${written} agents were written to ${dataDirPaths(dataDir).agentsDir}.`;
  if (written === inBackup) return [line];
  const missing = `${inBackup - written} private keys of agents in the backup were not written`;
  return [
    line,
    `WARNING  ${missing}: they do not decrypt, or are not the current keys of agents in it. Rotate the keys of agents that cannot log in.`,
  ];
}

function toFlags({ to, dataDir, configuration: { rootKeyFile } }: RestoreRequest): string {
  const dir = dataDir === null ? 'DIR' : quoteForShell(dataDir);
  return [
    `--data-dir ${dir}`,
    ...(to.kind === 'database' ? ['--database-file URL.txt'] : []),
    ...(rootKeyFile === null ? [] : [`--root-key-file ${quoteForShell(rootKeyFile)}`]),
  ].join(' ');
}
