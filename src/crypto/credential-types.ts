/**
 * The credential types with behaviour, such as a one-time password that is computed from its seed. WHY in this layer:
 * core has no cryptography. A type without a row is stored and retrieved unchanged.
 */
import type { CredentialTypes } from '../core/credential-types.ts';

export const CREDENTIAL_TYPES: CredentialTypes = new Map();
