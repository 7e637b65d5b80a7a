/** Credential types with behaviour: how a value is parsed when it is stored, and rendered when it is retrieved. */
import type { CredentialType } from './names.ts';
import { Secret } from './secret.ts';

export interface CredentialBehaviour {
  /**
   * Returns what is sealed. `text` is within the bounds of every value.
   * @throws INVALID_REQUEST, which rejects the request
   */
  parse(text: string): Secret;
  /** Returns what the caller gets at `now`, in milliseconds since 1970. */
  render(stored: Secret, now: number): Secret;
}

export type CredentialTypes = ReadonlyMap<string, CredentialBehaviour>;

/** The behaviour of every type without a row: the value is stored and retrieved unchanged. */
const GENERIC: CredentialBehaviour = { parse: (text) => new Secret(text), render: (stored) => stored };

export function behaviourOf(types: CredentialTypes, type: CredentialType): CredentialBehaviour {
  return types.get(type) ?? GENERIC;
}
