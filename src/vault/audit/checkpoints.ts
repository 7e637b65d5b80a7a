/**
 * Signs checkpoints of the audit log, and hands out proofs against them. SOURCE: docs/audit.md.
 * INVARIANT: only a committed, durable head record is signed, and the store keeps one note for a generation and a size.
 * So no two notes with different roots exist for a size, whichever node signs.
 */

import { isHeadAuthentic } from '../../crypto/chain.ts';
import {
  checkpointSigner,
  type LogCheckpoint,
  openCheckpoint,
  signCheckpoint,
  verifierKey,
} from '../../crypto/checkpoint.ts';
import { CompactRange, encodeHash } from '../../crypto/tree.ts';
import type { VaultKeys } from '../../crypto/vault-keys.ts';
import type { Clock } from '../../ledger/clock.ts';
import { NEVER_ABORTED, SingleFlight } from '../../ledger/single-flight.ts';
import { readHead, readNewestCheckpoint } from '../../store/audit-log.ts';
import type { Store } from '../../store/port.ts';
import type { Head } from '../../store/stored-data.ts';
import { readStoredKeys } from '../../store/vault-metadata.ts';

export interface SignedCheckpoint extends LogCheckpoint {
  readonly note: string;
  readonly rootText: string;
  readonly signedAt: number;
  /** The public key of the note, as verifiers take it. */
  readonly verifierKey: string;
}

export interface CheckpointParts {
  readonly store: Store;
  readonly keys: VaultKeys;
  readonly clock: Clock;
  /** Called with each checkpoint that this node has signed, when it is durable. */
  readonly onSigned: (checkpoint: SignedCheckpoint) => void;
  /** The line is for the operator. */
  readonly warn: (line: string) => void;
}

export class Checkpoints {
  readonly #parts: CheckpointParts;
  readonly #runs: SingleFlight<SignedCheckpoint>;
  #newest: SignedCheckpoint | null = null;

  constructor(parts: CheckpointParts) {
    this.#parts = parts;
    this.#runs = new SingleFlight(() => this.#sign());
  }

  get newest(): SignedCheckpoint | null {
    return this.#newest;
  }

  /** Signs the audit log as it is at this call or later. @throws StoreError, CheckpointConflictError */
  sign(): Promise<SignedCheckpoint> {
    return this.#runs.run(NEVER_ABORTED);
  }

  /** A checkpoint of at least the first `size` entries. @throws as `sign` */
  async covering(size: number): Promise<SignedCheckpoint> {
    return this.#newest !== null && this.#newest.size >= size ? this.#newest : this.sign();
  }

  /** Forgets the newest checkpoint, because the signing key or the audit log's end has changed. */
  reset(): void {
    this.#newest = null;
  }

  async #sign(): Promise<SignedCheckpoint> {
    const { store, clock, onSigned, warn } = this.#parts;
    // ORDER: the checkpoint first. Otherwise another node could add entries and sign them between the two reads.
    const stored = await store.run(readNewestCheckpoint());
    const { head } = await store.run(readHead());
    const tree = head === null ? null : CompactRange.parse(head.tree, head.seq);
    const keys = head === null ? null : await this.#keysOf(head);
    if (head === null || tree === null || keys === null) {
      throw new CheckpointConflictError(
        "The audit log's head record is missing or not authentic, so no checkpoint is signed.",
      );
    }
    const signer = checkpointSigner(keys);
    if (stored !== null && stored.generation > signer.generation) {
      throw new CheckpointConflictError(
        'The database has a checkpoint of a later signing key, so no checkpoint is signed.',
      );
    }
    const { size, root } = tree;
    const newest = this.#newest?.origin === signer.name ? this.#newest : null;
    if (newest !== null && (newest.size > size || (newest.size === size && newest.root !== root))) {
      throw new CheckpointConflictError(
        `This node has signed ${newest.size} entries, and the audit log does not extend them, so no checkpoint is signed.`,
      );
    }
    if (stored !== null && stored.generation === signer.generation) {
      // WHY signing continues: a row that anyone could write says nothing about the audit log.
      if (openCheckpoint(stored.note, signer)?.size !== stored.size) {
        warn(`The database has a checkpoint of ${stored.size} entries that this vault has not signed; it is ignored.`);
      } else if (stored.size > head.seq) {
        throw new CheckpointConflictError(
          `The audit log ends at entry ${head.seq}, before the checkpoint of ${stored.size} entries, so no checkpoint is signed.`,
        );
      }
    }
    const note = signCheckpoint({ size, root }, signer);
    const kept = await store.addCheckpoint({ generation: signer.generation, size, signedAt: clock.now(), note });
    // Signatures of Ed25519 are deterministic: another note has another root, or was altered.
    if (kept.note !== note) {
      const isOther = openCheckpoint(kept.note, signer) !== null;
      throw new CheckpointConflictError(
        `The stored checkpoint of ${size} entries ${isOther ? 'has another root' : 'was altered'}: the audit log was rolled back or altered.`,
      );
    }
    if (newest?.size === size) return newest;
    this.#newest = {
      origin: signer.name,
      size,
      root,
      rootText: encodeHash(root),
      note,
      signedAt: kept.signedAt,
      verifierKey: verifierKey(signer),
    };
    onSigned(this.#newest);
    return this.#newest;
  }

  /**
   * The keys with which the head record is authentic; null if there are none. WHY the stored ones: the audit key or the
   * signing key may have been replaced since this node's last batch.
   */
  async #keysOf(head: Head): Promise<VaultKeys | null> {
    const { store, keys } = this.#parts;
    const newer = keys.fork();
    const isOpened = newer.refresh(await store.run(readStoredKeys(), 'urgent'));
    return isOpened && isHeadAuthentic(newer.auditAt(head.seq), head) ? newer : null;
  }
}

/** The audit log and its checkpoints contradict each other. The message is for the operator. */
export class CheckpointConflictError extends Error {}
