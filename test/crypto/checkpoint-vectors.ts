/** The frozen checkpoints, receipts and proofs, which Go's packages made: test/vectors/go. */
import { createPrivateKey, createPublicKey } from 'node:crypto';
import type { NoteSigner } from '../../src/crypto/checkpoint.ts';
import {
  completeSubtrees,
  foldRight,
  type LeafRange,
  leafHash,
  nodeHash,
  type TreeHash,
} from '../../src/crypto/tree.ts';
import { readVectors } from './vectors.ts';

interface CheckpointVectors {
  /** Base64 of the 32 bytes. */
  readonly seed: string;
  readonly origin: string;
  readonly verifier_key: string;
  /** Checkpoints of the log in audit-v1.json, for each size from 0 on. */
  readonly checkpoints: readonly { readonly size: number; readonly root: string; readonly note: string }[];
  readonly receipts: readonly { readonly seq: number; readonly size: number; readonly receipt: string }[];
  readonly consistency: readonly { readonly from: number; readonly to: number; readonly proof: readonly string[] }[];
  /** Whether Go accepts each with the verifier key. */
  readonly notes: readonly { readonly name: string; readonly note: string; readonly accepted: boolean }[];
  /** SHA-256 over all inclusion and all consistency proofs of a tree with the leaves SHA-256("leaf 0") … */
  readonly trees: readonly {
    readonly size: number;
    readonly root: string;
    readonly records: string;
    readonly trees: string;
  }[];
}

export const CHECKPOINTS = readVectors<CheckpointVectors>('checkpoints-v1.json');

/** DER of a PKCS#8 private key of Ed25519, before the seed. SOURCE: RFC 8410, section 7. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

/** A signer whose seed is 32 times the byte. */
export function signerFrom(byte: number, name: string): NoteSigner {
  const der = Buffer.concat([PKCS8_PREFIX, Buffer.alloc(32, byte)]);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  return { name, privateKey, publicKey: createPublicKey(privateKey) };
}

/** The signer of the vectors. */
export const SIGNER = signerFrom(7, CHECKPOINTS.origin);

/** The root of each range of leaves, whose data are the MACs. Each complete subtree is computed once. */
export function rangeRoots(macs: readonly string[]): (range: LeafRange) => TreeHash {
  const known = new Map<string, TreeHash>();
  const rootOf = (level: number, position: number): TreeHash => {
    const key = `${level} ${position}`;
    const root =
      known.get(key) ??
      (level === 0
        ? leafHash(macs[position] ?? '')
        : nodeHash(rootOf(level - 1, 2 * position), rootOf(level - 1, 2 * position + 1)));
    known.set(key, root);
    return root;
  };
  return (range) => foldRight(completeSubtrees(range).map(({ level, position }) => rootOf(level, position)));
}
