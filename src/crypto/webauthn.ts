/**
 * Checks registrations and assertions of passkeys. The library is loaded at the first one, because its parsers of
 * certificates take time and memory. SOURCE: WebAuthn, level 3, sections 7.1 and 7.2.
 */
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import type { Passkey, PasskeyId } from '../vault/operators/operator.ts';
import type { AssertionFailure } from '../vault/sessions/sign-in-operations.ts';

export type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';

export interface WebOrigin {
  /** Scheme, host and port, as a browser writes them. */
  readonly origin: string;
  /** The relying party's id: the host. */
  readonly rpId: string;
}

/** EdDSA, ES256 and RS256. SOURCE: IANA, COSE algorithms. */
const ALGORITHMS = [-8, -7, -257];

/**
 * The base point of P-256, so that an unknown passkey takes as long to check as a known one. No operator has this key.
 */
export const DUMMY_PASSKEY_KEY =
  'pQECAyYgASFYIGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWIlggT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU';

type Checked<T, F = string> = { readonly failure: F } | ({ readonly failure: null } & T);

export function toBase64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}

/**
 * Checks the registration of a new passkey; `challenge` is in base64url. Never throws, whatever the response contains.
 */
export async function checkRegistration(
  response: RegistrationResponseJSON,
  challenge: string,
  { origin, rpId }: WebOrigin,
): Promise<Checked<Pick<Passkey, 'id' | 'publicKey' | 'counter' | 'isSynced'>>> {
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server');
  const { decodeAttestationObject, isoBase64URL } = await import('@simplewebauthn/server/helpers');
  try {
    const attestation = decodeAttestationObject(isoBase64URL.toBuffer(response.response.attestationObject));
    // WHY: the library would fetch the revocation list that a certificate in the response names. No certificate was
    // requested.
    const isSelf = attestation.get('fmt') === 'packed' && attestation.get('attStmt').get('x5c') === undefined;
    if (attestation.get('fmt') !== 'none' && !isSelf) return { failure: 'the attestation has certificates' };
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: origin,
      expectedRPID: rpId,
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    });
    if (!verified) return { failure: 'the registration is not valid' };
    const { credential, credentialBackedUp } = registrationInfo;
    return {
      failure: null,
      id: credential.id as PasskeyId,
      publicKey: toBase64url(credential.publicKey),
      counter: credential.counter,
      isSynced: credentialBackedUp,
    };
  } catch {
    return { failure: 'the registration is not valid' };
  }
}

/**
 * Whether the holder of the key signed the challenge on the page, after verifying the user. WHY not the counter: its
 * newest value is known only within the batch.
 */
export async function checkAssertion(
  response: AuthenticationResponseJSON,
  publicKey: string,
  challenge: string,
  { origin, rpId }: WebOrigin,
): Promise<Checked<{ readonly counter: number }, AssertionFailure>> {
  const { verifyAuthenticationResponse } = await import('@simplewebauthn/server');
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: origin,
      expectedRPID: rpId,
      requireUserVerification: true,
      credential: { id: response.id, publicKey: new Uint8Array(Buffer.from(publicKey, 'base64url')), counter: 0 },
    });
    if (!verified) return { failure: 'passkey_signature_invalid' };
    return { failure: null, counter: authenticationInfo.newCounter };
  } catch {
    return { failure: 'passkey_not_for_page' };
  }
}

interface UserEntity {
  readonly id: Uint8Array;
  readonly name: string;
}

const TIMEOUT_MS = 5 * 60_000;

/** The options for the browser's `PublicKeyCredential.parseCreationOptionsFromJSON`. */
export function registrationOptions(
  challenge: string,
  { rpId }: WebOrigin,
  user: UserEntity,
  known: readonly Passkey[],
) {
  return {
    rp: { id: rpId, name: 'Leasehold' },
    user: { id: toBase64url(user.id), name: user.name, displayName: user.name },
    challenge,
    pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key' as const, alg })),
    timeout: TIMEOUT_MS,
    excludeCredentials: known.map(({ id, transports }) => ({
      type: 'public-key' as const,
      id,
      transports: [...transports],
    })),
    authenticatorSelection: {
      residentKey: 'required' as const,
      requireResidentKey: true,
      userVerification: 'required' as const,
    },
    attestation: 'none' as const,
  };
}

/** The options for the browser's `PublicKeyCredential.parseRequestOptionsFromJSON`. */
export function assertionOptions(challenge: string, { rpId }: WebOrigin) {
  return { challenge, rpId, timeout: TIMEOUT_MS, userVerification: 'required' as const };
}
