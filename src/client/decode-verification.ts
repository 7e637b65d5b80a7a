/** Decodes verifications, checkpoints and proofs. */
import { type Decoder, listOf, object, optional } from './decoders.ts';
import type * as types from './types.ts';

type Verified<Valid extends boolean> = Extract<types.Verification, { valid: Valid }>;
const decodeValidity = object<{ valid: boolean }>({ valid: 'boolean' });
const decodeState = optional(
  object<NonNullable<types.Verification['state']>>({
    checked: 'integer',
    problem_count: 'integer',
    problems: listOf(object<{ subject: string; problem: string }>({ subject: 'text', problem: 'text' })),
  }),
);
const decodeIntact = object<Verified<true>>({
  valid: 'boolean',
  entries: 'integer',
  first_entry: 'text or null',
  last_entry: 'text or null',
  state: decodeState,
});
const decodeBroken = object<Verified<false>>({
  valid: 'boolean',
  break_at_entry: 'integer',
  break_at_timestamp: 'text or null',
  message: 'text',
  state: decodeState,
});
export const decodeVerification: Decoder<types.Verification> = (body) =>
  decodeValidity(body).valid ? decodeIntact(body) : decodeBroken(body);
export const decodeCheckpoint = object<types.Checkpoint>({
  origin: 'text',
  size: 'integer',
  root: 'text',
  note: 'text',
  verifier_key: 'text',
  signed_at: 'text',
});
export const decodeEntryProof = object<types.EntryProof>({
  seq: 'integer',
  hmac: 'text',
  size: 'integer',
  proof: 'list of text',
  receipt: 'text',
  verifier_key: 'text',
});
export const decodeConsistency = object<types.ConsistencyProof>({
  from: 'integer',
  to: 'integer',
  from_root: 'text',
  to_root: 'text',
  proof: 'list of text',
});
