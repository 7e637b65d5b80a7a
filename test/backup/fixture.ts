// Vaults on each store, their backups, and restores in this process.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import type { Opener } from '../../src/backup/encryption.ts';
import { describeFailure } from '../../src/server/operator-errors.ts';
import { restore } from '../../src/server/restore.ts';
import { formatRestore, type RestoreFlags, toRestoreRequest } from '../../src/server/restore-command.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import { newHome } from '../kit/command.ts';
import { newDatabase } from '../kit/database.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { querySql } from '../kit/postmaster.ts';
import { startTestService, type TestService } from '../kit/service.ts';

export type Kind = 'sqlite' | 'postgres';
export const KINDS: readonly Kind[] = ['sqlite', 'postgres'];

const identity = await generateX25519Identity();
export const RECIPIENT = await identityToRecipient(identity);
export const OPENER: Opener = { kind: 'identities', identities: [new Secret(identity)] };

export function identityFile(scope: Scope, text = identity): string {
  const file = join(temporaryDirectory(scope), 'identity.txt');
  writeFileSync(file, `# made by a test\n${text}\n`, { mode: 0o600 });
  return file;
}

/** A file with the URL, for `--database-file`. */
export function urlFile(scope: Scope, url: string): string {
  const file = join(temporaryDirectory(scope), 'url');
  writeFileSync(file, `${url}\n`, { mode: 0o600 });
  return file;
}

/** The number of rows of a table in PostgreSQL. */
export async function countRows(url: string, table: string): Promise<number> {
  const [row] = await querySql(url, `SELECT count(*)::integer AS n FROM leasehold.${table}`);
  return Number(row?.['n']);
}

/** A place for a vault: a data directory, and the flags that name its database. */
export interface Place {
  readonly dataDir: string;
  readonly flags: readonly string[];
}

/** An empty one. `rootKeyOf` is the data directory whose root key the operator has put there. */
export async function newPlace(scope: Scope, kind: Kind, rootKeyOf: string | null = null): Promise<Place> {
  const dataDir = join(temporaryDirectory(scope), 'data');
  if (rootKeyOf !== null) {
    mkdirSync(dataDir, { mode: 0o700 });
    copyFileSync(join(rootKeyOf, 'root.key'), join(dataDir, 'root.key'));
  }
  return { dataDir, flags: kind === 'sqlite' ? [] : ['--database-file', urlFile(scope, await newDatabase(scope))] };
}

export function startAt(scope: Scope, { dataDir, flags }: Place, more: readonly string[] = []): Promise<TestService> {
  return startTestService(scope, [...flags, ...more], dataDir);
}

/** A service on the embedded database with an agent, to which these paths and values were put, and a backup of it. */
export async function newBackup(scope: Scope, puts: readonly (readonly [path: string, value: string])[] = []) {
  const source = await newPlace(scope, 'sqlite');
  const service = await startAt(scope, source);
  await service.agent('worker', { '*': ['retrieve'] });
  for (const [path, value] of puts) await service.admin.post('/api/v1/credentials', { path, value });
  return { source, file: await backUp(scope, service), verifierKey: await verifierKeyOf(service) };
}

/** Resolves to the key that `leasehold audit checkpoint --public-key` prints. */
export async function verifierKeyOf({ admin }: Pick<TestService, 'admin'>): Promise<string> {
  return (await admin.get('/api/v1/audit/checkpoint')).body.data.verifier_key;
}

/** Runs `leasehold backup` as the administrator. */
async function runBackup(scope: Scope, service: TestService, words: readonly string[]) {
  const home = newHome(scope, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
  return home.leasehold(['backup', ...words]);
}

/** Takes a backup of the service; resolves to its file. */
export async function backUp(scope: Scope, service: TestService): Promise<string> {
  const file = join(temporaryDirectory(scope), 'vault.age');
  const { code, stderr } = await runBackup(scope, service, [file, '--recipient', RECIPIENT]);
  assert.equal(code, 0, stderr);
  return file;
}

export interface Restored {
  readonly code: number;
  readonly out: string;
  /** Lines for the operator; the last one is the error. */
  readonly told: readonly string[];
}

/** What the operator types; null without a terminal. */
type Answer = string | null | (() => string);

/** The request of `leasehold restore` with these words. `warn` receives lines for the operator. */
export function restoreRequest(
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  warn: (line: string) => void = () => undefined,
) {
  const names = ['data-dir', 'database', 'database-file', 'root-key-file', 'slot-passphrase-file', 'identity-file'];
  const texts = [...names, 'passphrase-file', 'verifier-key'].map(
    (name) => [name, { type: 'string' as const }] as const,
  );
  const options = { ...Object.fromEntries(texts), 'accept-damage': { type: 'boolean' as const } };
  const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true });
  const none = Object.fromEntries(texts.map(([name]) => [name, null]));
  const flags: unknown = { ...none, 'accept-damage': false, ...values };
  return toRestoreRequest(positionals[0] ?? '', flags as RestoreFlags, environment, warn);
}

/** Runs `leasehold restore` in this process. */
export async function restoreWith(
  words: readonly string[],
  answer: Answer = 'yes',
  environment: Readonly<Record<string, string>> = {},
): Promise<Restored> {
  const told: string[] = [];
  const umask = process.umask(0o077);
  try {
    const request = restoreRequest(words, environment);
    const { signal } = new AbortController();
    const ask = async (): Promise<string | null> => (typeof answer === 'function' ? answer() : answer);
    const result = await restore(request, { signal, say: (line) => told.push(line), ask, progress: () => undefined });
    return { code: 0, out: formatRestore(request, result), told };
  } catch (error) {
    const failure = describeFailure(error);
    if (failure === null) throw error;
    return { code: failure.code, out: '', told: [...told, failure.line] };
  } finally {
    process.umask(umask);
  }
}

export function wordsFor(scope: Scope, file: string, { dataDir, flags }: Place): string[] {
  return [file, '--data-dir', dataDir, '--identity-file', identityFile(scope), ...flags];
}

export async function restoreTo(scope: Scope, file: string, place: Place): Promise<Restored> {
  const restored = await restoreWith(wordsFor(scope, file, place));
  assert.equal(restored.code, 0, restored.told.join('\n'));
  return restored;
}
