/**
 * Reads the flags and variables of a restore, and prints its report: progress, restored and checked rows, and the next
 * steps. It never prints a URL, because one may contain a password.
 */
import { type Opener, parseIdentities } from '../backup/encryption.ts';
import { parseVerifierKey, verifierKey } from '../crypto/checkpoint.ts';
import type { Environment } from '../flags/flag.ts';
import { UsageError } from '../platform/errors.ts';
import { quoteForShell } from '../platform/installation.ts';
import { dataDirPaths } from '../platform/paths.ts';
import { configurationOf } from './configuration.ts';
import { SERVER_COMMAND } from './flag-table.ts';
import { chooseDatabase, filePath, PASSWORD_ON_COMMAND_LINE } from './flag-values.ts';
import { readPassphraseFile, readSecretFile, type SlotAccess } from './offline-keys.ts';
import type { RestoreResult } from './restore.ts';
import { describeLocation, type VaultLocation } from './restore-target.ts';

/** The flags of `leasehold restore`; null for a flag that is not given. */
export interface RestoreFlags {
  readonly 'data-dir': string | null;
  readonly database: string | null;
  readonly 'database-file': string | null;
  readonly 'root-key-file': string | null;
  readonly 'slot-passphrase-file': string | null;
  readonly 'identity-file': string | null;
  readonly 'passphrase-file': string | null;
  readonly 'verifier-key': string | null;
  readonly 'accept-damage': boolean;
}

/** Relative paths begin at INIT_CWD of the environment. `warn` receives lines for the operator. @throws UsageError */
export function toRestoreRequest(
  backup: string,
  flags: RestoreFlags,
  environment: Environment,
  warn: (line: string) => void,
): RestoreRequest {
  const path = (text: string | null | undefined): string | null => filePath(text ?? null, environment);
  const database = chooseDatabase(flags.database, path(flags['database-file']), environment);
  if (database?.showsPassword === true) warn(PASSWORD_ON_COMMAND_LINE);
  // WHY the flag is needed with a database: the directory in the environment may belong to a server, with its agents'
  // keys.
  const dataDir = path(flags['data-dir'] ?? (database === null ? environment['LEASEHOLD_DATA_DIR'] : null));
  if (database === null && dataDir === null) throw new UsageError('give --data-dir DIR, or --database URL');
  return {
    file: path(backup) ?? '',
    opener: readOpener(path(flags['identity-file']), path(flags['passphrase-file']), warn),
    to: database === null ? { kind: 'directory', dir: dataDir ?? '' } : { kind: 'database', address: database.address },
    dataDir,
    configuration: configurationOf(dataDir, path(flags['root-key-file']), environment),
    slotPassphrase: readPassphraseFile(path(flags['slot-passphrase-file']), warn),
    verifierKeys: flags['verifier-key'] === null ? null : parseVerifierKeys(flags['verifier-key']),
    acceptsDamage: flags['accept-damage'],
  };
}

/**
 * Parses one or more keys: an operator may have kept several, because each restore of the vault adds one. @throws
 * UsageError
 */
function parseVerifierKeys(text: string): string[] {
  const verifiers = text.trim().split(/\s+/).map(parseVerifierKey);
  return verifiers.map((verifier) => {
    if (verifier !== null) return verifierKey(verifier);
    throw new UsageError(
      '--verifier-key: must be the line that leasehold audit checkpoint --public-key prints: leasehold/VAULT+KEYID+KEY',
    );
  });
}

function readOpener(identityFile: string | null, passphraseFile: string | null, warn: (line: string) => void): Opener {
  if (identityFile !== null && passphraseFile === null) {
    return { kind: 'identities', identities: parseIdentities(readSecretFile(identityFile, warn), identityFile) };
  }
  const passphrase = readPassphraseFile(passphraseFile, warn);
  if (passphrase !== null && identityFile === null) return { kind: 'passphrase', passphrase };
  throw new UsageError('Give --identity-file or --passphrase-file: one of them opens the backup.');
}

export interface RestoreRequest extends SlotAccess {
  readonly file: string;
  readonly opener: Opener;
  readonly to: VaultLocation;
  /** The directory of the server, for the keys of agents; null if only a database is restored. */
  readonly dataDir: string | null;
  /** The accepted verifier keys: the vault in the backup must have one of them. Null to ask. */
  readonly verifierKeys: readonly string[] | null;
  /** Whether to restore a backup whose chain, rows or values do not verify. */
  readonly acceptsDamage: boolean;
}

export interface RestoreReporter {
  readonly signal: AbortSignal;
  say(line: string): void;
  progress(what: string, rows: number, of: number): void;
  /** The answer to a question on the terminal; null without a terminal. */
  ask(question: string): Promise<string | null>;
}

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
