/**
 * Checks the rows of a backup: the chain of the audit log, its checkpoints, and the MAC of each row that has one. It
 * also checks the references between credential versions and counts, and the values of a sample of credentials.
 */

import { damaged } from '../backup/errors.ts';
import type { AgentId } from '../core/names.ts';
import type { Resource } from '../core/resources.ts';
import { checkpointSigner, openCheckpoint } from '../crypto/checkpoint.ts';
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
} from '../store/schema.ts';
import type { Row } from '../store/statement.ts';
import type { Table } from '../store/table.ts';
import type { VaultMetadata } from '../store/transfer.ts';
import type { Agent } from '../vault/agents/agent.ts';
import type { StoredCheckpoint } from '../vault/audit/proofs.ts';
import { type ChainBreak, ChainVerifier, verifyHead } from '../vault/audit/verification/chain-verifier.ts';
import type { AssociatedData } from '../vault/credentials/credential.ts';

/** Credentials whose values are decrypted: all of a small vault, and about this many of a large one. */
const SAMPLED_CREDENTIALS = 1000;

const RESOURCES = Object.keys(RESOURCE_TABLES) as Resource[];

export type RestoredAgent = Pick<Agent, 'name' | 'publicKey'>;

export class RestoreChecks {
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

  /** To be called for each row, in the order of the backup. @throws BackupError */
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

  /** The failed verifications, one sentence each. To be called after the last row. */
  findings({ head, highestSeq }: Pick<VaultMetadata, 'head' | 'highestSeq'>): string[] {
    const broken = this.#break ?? verifyHead(this.#keys, this.#chain.point, head, null);
    return [
      ...(broken === null ? [] : [`the audit chain is broken at entry ${broken.entry}: ${broken.reason}`]),
      ...(head === null || head.seq === highestSeq
        ? []
        : [`the log ends at entry ${head.seq}, and the record of the vault names entry ${highestSeq}`]),
      ...(this.#newestVersions.size === 0
        ? []
        : [`the newest versions of ${this.#newestVersions.size} credentials are missing`]),
      ...(this.#orphans === 0 ? [] : [`${this.#orphans} versions or access counts belong to no credential`]),
      ...(this.#forgedRows === 0 ? [] : [`the MACs of ${this.#forgedRows} rows do not match`]),
      ...(this.#unsignedCheckpoints === 0
        ? []
        : [`the vault has not signed ${this.#unsignedCheckpoints} of its checkpoints`]),
      ...(this.#notDecrypted === 0 ? [] : [`${this.#notDecrypted} of the sampled values do not decrypt`]),
    ];
  }
}
