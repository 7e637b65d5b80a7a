/**
 * Checkpoints: signed notes about the size and the root of the log's tree.
 * SOURCE: https://c2sp.org/tlog-checkpoint; docs/formats.md, "Checkpoints".
 */

import type { SigningKey } from './keyring.ts';
import type { VaultKeys } from './keys.ts';
import { type NoteSigner, type NoteVerifier, openNote, signNote } from './signed-note.ts';
import { decodeHash, encodeHash } from './tree.ts';
import type { TreeHead } from './tree-proof.ts';

/** `origin` names the log: a log that was cut, and accepted so, continues under another one. */
export interface LogCheckpoint extends TreeHead {
  readonly origin: string;
}

const SIZE = /^(0|[1-9][0-9]{0,15})$/;

/**
 * The signer of the log's checkpoints; its name is their origin. The origin has the number of the signing key, unless
 * it is the first one: the key changes when a roll-back is accepted, and then the log is another one for a verifier.
 */
export function checkpointSigner(keys: Pick<VaultKeys, 'vaultId' | 'signing'>, generation?: number): LogSigner {
  const key =
    generation === undefined ? keys.signing.at(-1) : keys.signing.find((each) => each.generation === generation);
  if (key === undefined) throw new Error('the keyset has no such signing key');
  const suffix = key.generation === 1 ? '' : `/${key.generation}`;
  return { ...key, name: `leasehold/${keys.vaultId}${suffix}` };
}

export interface LogSigner extends NoteSigner, SigningKey {}

/** The key's name is the origin. */
export function signCheckpoint({ size, root }: TreeHead, signer: NoteSigner): string {
  return signNote(`${signer.name}\n${size}\n${encodeHash(root)}\n`, signer);
}

/** Null if the note has no valid signature of the key, or is not a checkpoint of its origin. */
export function openCheckpoint(note: string, verifier: NoteVerifier): LogCheckpoint | null {
  const text = openNote(note, verifier);
  const checkpoint = text === null ? null : parseCheckpoint(text);
  return checkpoint?.origin === verifier.name ? checkpoint : null;
}

/** Reads a note's text without checking its signature; null if it is not a checkpoint. Extension lines are ignored. */
export function parseCheckpoint(text: string): LogCheckpoint | null {
  const [origin, size, rootText] = text.split('\n');
  const root = rootText === undefined ? null : decodeHash(rootText);
  if (!origin || size === undefined || !SIZE.test(size) || root === null) return null;
  return Number.isSafeInteger(Number(size)) ? { origin, size: Number(size), root } : null;
}
