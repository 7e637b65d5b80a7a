/** Passkeys of this browser, by the JSON forms of WebAuthn. SOURCE: W3C WebAuthn Level 3, section 5.1. */
import { LeaseholdError } from '../../../src/client/errors.ts';
import type { SignIn } from '../../../src/client/sign-in.ts';
import type { AssertionRequest, Passkey, RegistrationRequest } from '../../../src/client/types.ts';
import { client, openBrowserSession, signInCalls } from '../session/console-client.ts';

function toResponse(credential: Credential | null): unknown {
  if (!(credential instanceof PublicKeyCredential)) {
    throw new LeaseholdError('BAD_KEY', 'the browser returned no passkey');
  }
  return credential.toJSON();
}

/** Explains the errors of the browser, most of which are not helpful. */
async function ask(work: () => Promise<Credential | null>): Promise<unknown> {
  if (!('PublicKeyCredential' in window)) {
    throw new LeaseholdError('BAD_KEY', 'this browser does not support passkeys here; they need https or localhost');
  }
  try {
    return toResponse(await work());
  } catch (error) {
    if (error instanceof LeaseholdError) throw error;
    throw new LeaseholdError('BAD_KEY', 'the passkey was not used: it was cancelled, or it does not exist', {
      cause: error,
    });
  }
}

export async function signInWithPasskey(): Promise<void> {
  const { challenge_id, options } = await signInCalls.passkeyOptions();
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
  // The browser returns the type that the server's schema describes, and the server checks it.
  const response = (await ask(() => navigator.credentials.get({ publicKey }))) as AssertionRequest['response'];
  await openBrowserSession(await signInCalls.verifyPasskey({ challenge_id, response }));
}

async function register(calls: SignIn, label: string, code: { readonly code?: string }): Promise<Passkey> {
  const { challenge_id, options } = await calls.registrationOptions(code);
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
  const response = (await ask(() => navigator.credentials.create({ publicKey }))) as RegistrationRequest['response'];
  return calls.registerPasskey({ challenge_id, response, label, ...code });
}

export const enrolPasskey = (code: string, label: string): Promise<Passkey> => register(signInCalls, label, { code });

/** Adds a passkey for the signed-in operator. */
export const addPasskey = (label: string): Promise<Passkey> => register(client.signIn, label, {});
