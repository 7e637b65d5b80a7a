/**
 * Reads a backup completely, before anything is written: opens its keys, and checks every field, the chain of the audit
 * log, its checkpoints, and the MAC of each row that has one. It also checks the references between credential versions
 * and counts, and the values of a sample of credentials.
 */
import { isDeepStrictEqual } from 'node:util';
import { decryptFile } from '../backup/encryption.ts';
import { damaged } from '../backup/errors.ts';
import type { BackupSummary } from '../backup/file.ts';
import { readRecords } from '../backup/record-reader.ts';
import type { BackupHeader, BackupTotals, Cell } from '../backup/records.ts';
import { decodeStoredKeys } from '../backup/records.ts';
import type { AgentId } from '../core/names.ts';
import type { Resource } from '../core/resources.ts';
import { checkpointSigner, openCheckpoint, verifierKey } from '../crypto/checkpoint.ts';
import { timingSafeEqualText } from '../crypto/primitives.ts';
import { decryptValue } from '../crypto/value-encryption.ts';
import type { VaultKeys } from '../crypto/vault-keys.ts';
import { isAuthentic } from '../ledger/authenticated-rows.ts';
import {
  ACCESS_COUNTS,
  AGENTS,
  AUDIT_ENTRIES,
  CHECKPOINTS,
  CREDENTIAL_VERSIONS,
  CREDENTIALS,
  RESOURCE_TABLES,
  TABLES,
} from '../store/schema.ts';
import type { Row } from '../store/statement.ts';
import type { Column, Table } from '../store/table.ts';
import type { VaultMetadata } from '../store/transfer.ts';
import type { Agent } from '../vault/agents/agent.ts';
import type { StoredCheckpoint } from '../vault/audit/proofs.ts';
import { type ChainBreak, ChainVerifier, verifyHead } from '../vault/audit/verification/chain-verifier.ts';
import type { AssociatedData } from '../vault/credentials/credential.ts';
import { openOffline } from './offline-keys.ts';
import type { RestoreReporter, RestoreRequest } from './restore-command.ts';

/** Credentials whose values are decrypted: all of a small vault, and about this many of a large one. */
const SAMPLED_CREDENTIALS = 1000;

const RESOURCES = Object.keys(RESOURCE_TABLES) as Resource[];

export type RestoredAgent = Pick<Agent, 'name' | 'publicKey'>;

class RestoreChecks {
  readonly #keys: VaultKeys;
  readonly #chain: ChainVerifier;
  #break: ChainBreak | null = null;
  #forgedRows = 0;
  #unsignedCheckpoints = 0;
  readonly #sample: Pick<AssociatedData, 'credentialId' | 'path'>[] = [];
  #sampledById: ReadonlyMap<string, Pick<AssociatedData, 'credentialId' | 'path'>> | null = null;
  readonly #agents = new Map<AgentId, RestoredAgent>();
  /** The newest version of each credential, until its row is read. */
  readonly #newestVersions = new Map<string, number>();
  readonly #credentialIds = new Set<string>();
  #orphans = 0;
  #decrypted = 0;
  #notDecrypted = 0;

  constructor(keys: VaultKeys) {
    this.#keys = keys;
    this.#chain = new ChainVerifier(keys);
  }

  get agents(): ReadonlyMap<AgentId, RestoredAgent> {
    return this.#agents;
  }

  get decrypted(): number {
    return this.#decrypted;
  }

  /** Checks a row. Call it in the order of the backup. @throws BackupError */
  check(table: Table<object>, row: Row): void {
    if (table === AUDIT_ENTRIES) this.#break ??= this.#chain.next(AUDIT_ENTRIES.decode(row));
    const resource = RESOURCES.find((each) => RESOURCE_TABLES[each] === table);
    const isForged = resource !== undefined && !isAuthentic(this.#keys.row, resource, table.decode(row) as never);
    if (isForged) this.#forgedRows += 1;
    if (table === CHECKPOINTS && !this.#isSigned(CHECKPOINTS.decode(row))) this.#unsignedCheckpoints += 1;
    // The name becomes the name of a directory.
    if (table === AGENTS && !isForged) {
      const { id, name, publicKey } = AGENTS.decode(row);
      this.#agents.set(id, { name, publicKey });
    }
    if (table === CREDENTIALS) {
      const { id, path, version } = CREDENTIALS.decode(row);
      if (this.#credentialIds.has(id)) throw damaged('two credentials have the same id');
      this.#credentialIds.add(id);
      this.#newestVersions.set(id, version);
      this.#addToSample({ credentialId: id, path });
    }
    if (table === CREDENTIAL_VERSIONS) this.#checkVersion(row);
    const isPart = table === CREDENTIAL_VERSIONS || table === ACCESS_COUNTS;
    if (isPart && !this.#credentialIds.has(String(row['credential_id']))) this.#orphans += 1;
  }

  /**
   * Whether the checkpoint was signed by the vault. A checkpoint of a later signing key would stop the signing of
   * checkpoints.
   */
  #isSigned({ generation, size, note }: StoredCheckpoint): boolean {
    if (!this.#keys.signing.some((key) => key.generation === generation)) return false;
    return openCheckpoint(note, checkpointSigner(this.#keys, generation))?.size === size;
  }

  /** Every credential has the same chance, although their number is not known yet. SOURCE: Vitter, algorithm R. */
  #addToSample(credential: Pick<AssociatedData, 'credentialId' | 'path'>): void {
    if (this.#sample.length < SAMPLED_CREDENTIALS) {
      this.#sample.push(credential);
      return;
    }
    const index = Math.floor(Math.random() * this.#credentialIds.size);
    if (index < SAMPLED_CREDENTIALS) this.#sample[index] = credential;
  }

  #checkVersion(row: Row): void {
    const id = String(row['credential_id']);
    if (this.#newestVersions.get(id) === row['version']) this.#newestVersions.delete(id);
    this.#sampledById ??= new Map(this.#sample.map((each) => [each.credentialId, each]));
    const sampled = this.#sampledById.get(id);
    if (sampled === undefined) return;
    const { type, version, sealed } = CREDENTIAL_VERSIONS.decode(row);
    if (decryptValue(this.#keys, sealed, { ...sampled, type, version }) === null) this.#notDecrypted += 1;
    else this.#decrypted += 1;
  }

  /** The failed verifications, one sentence each. Call it after the last row. */
  findings({ head, highestSeq }: Pick<VaultMetadata, 'head' | 'highestSeq'>): string[] {
    const broken = this.#break ?? verifyHead(this.#keys, this.#chain.point, head, null);
    return [
      ...(broken === null ? [] : [`the audit chain is broken at entry ${broken.entry}: ${broken.reason}`]),
      ...(head === null || head.seq === highestSeq
        ? []
        : [`the log ends at entry ${head.seq}, and the record of the vault names entry ${highestSeq}`]),
      ...counted(this.#newestVersions.size, (count) => `the newest versions of ${count} credentials are missing`),
      ...counted(this.#orphans, (count) => `${count} versions or access counts belong to no credential`),
      ...counted(this.#forgedRows, (count) => `the MACs of ${count} rows do not match`),
      ...counted(this.#unsignedCheckpoints, (count) => `the vault has not signed ${count} of its checkpoints`),
      ...counted(this.#notDecrypted, (count) => `${count} of the sampled values do not decrypt`),
    ];
  }
}

const counted = (count: number, describe: (count: number) => string): string[] =>
  count === 0 ? [] : [describe(count)];

export interface ReadBackup {
  readonly summary: BackupSummary;
  /** SHA-256 of its records, in hexadecimal. */
  readonly digest: string;
  readonly keys: VaultKeys;
  readonly metadata: VaultMetadata;
  readonly checks: RestoreChecks;
  /** The failed verifications, one sentence each. */
  readonly findings: readonly string[];
  /** The public keys of the vault's checkpoints, the newest one last. */
  readonly verifierKeys: readonly string[];
}

export async function readBackup(request: RestoreRequest, { signal, say }: RestoreReporter): Promise<ReadBackup> {
  let opened: { readonly header: BackupHeader; readonly keys: VaultKeys; readonly checks: RestoreChecks } | null = null;
  let end: { readonly totals: BackupTotals; readonly sha256: string } | null = null;
  for await (const record of readRecords(decryptFile(request.file, request.opener))) {
    signal.throwIfAborted();
    if (record.kind === 'header') {
      const { header } = record;
      const keys = await openOffline(decodeStoredKeys(header.keys), request, 'the vault in the backup', say);
      assertConsistent(header, keys);
      opened = { header, keys, checks: new RestoreChecks(keys) };
    }
    if (record.kind === 'rows' && opened !== null) {
      const { table, rows } = toRows(opened.header, record);
      for (const row of rows) opened.checks.check(table, row);
    }
    if (record.kind === 'end') end = record;
  }
  if (opened === null || end === null) throw damaged('it is empty');
  const { header, keys, checks } = opened;
  const findings = checks.findings(header.vault);
  const verifierKeys = keys.signing.map(({ generation }) => verifierKey(checkpointSigner(keys, generation)));
  const { totals, sha256 } = end;
  return { summary: { header, totals }, digest: sha256, keys, metadata: header.vault, checks, findings, verifierKeys };
}

/** Whether the header's parts belong to one vault. @throws BackupError */
function assertConsistent(header: BackupHeader, keys: VaultKeys): void {
  const { vault, vault_id, log_end, key_slots } = header;
  const stored = decodeStoredKeys(header.keys);
  const isSameVault = vault.vaultId === vault_id && stored.vaultId === vault_id && stored.keyCheck === vault.keyCheck;
  if (!isSameVault || !timingSafeEqualText(vault.keyCheck, keys.checkValue)) {
    throw damaged('the record of the vault does not belong to its keys');
  }
  const { head } = vault;
  const end = head === null ? null : { seq: head.seq, hmac: head.hmac, mac: head.mac };
  const named = stored.slots.map(({ name, kind }) => ({ name, kind }));
  if (isDeepStrictEqual([end, named], [log_end === null ? null : { ...log_end }, key_slots])) return;
  throw damaged('record 1 (the header): log_end or key_slots differ from the record of the vault or its keys');
}

export function toRows(
  header: BackupHeader,
  { table: name, rows }: { readonly table: string; readonly rows: readonly (readonly Cell[])[] },
): { readonly table: Table<object>; readonly rows: readonly Row[] } {
  const table = TABLES.find((each) => each.name === name);
  if (table === undefined) throw damaged('it has rows of an unknown table');
  const columns = header.tables[name] ?? [];
  return { table, rows: rows.map((cells) => toRow(table, columns, cells)) };
}

function toRow({ columns }: Table<object>, names: readonly string[], cells: readonly Cell[]): Row {
  return Object.fromEntries(columns.map((column) => [column.name, toValue(column, cells[names.indexOf(column.name)])]));
}

/** The value of a cell. The rules of the backup have already checked its type. */
function toValue({ type }: Column, cell: Cell | undefined): string | number | Uint8Array | null {
  return type === 'bytes' && typeof cell === 'string' ? Buffer.from(cell, 'base64') : (cell ?? null);
}
