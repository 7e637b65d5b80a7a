/** Signing in with the identity provider, with a state that only this tab knows. */
import { LeaseholdError } from '../../../src/client/errors.ts';
import { openBrowserSession, signInCalls } from '../session/console-client.ts';

const STATE_KEY = 'leasehold.oidc-state';
const RETURN_KEY = 'leasehold.return-to';

export async function startOidc(): Promise<void> {
  const { url, state } = await signInCalls.oidcOptions();
  const target = new URL(url);
  if (target.protocol !== 'https:' && target.protocol !== 'http:') {
    throw new LeaseholdError('INVALID_RESPONSE', 'the URL of the provider must use http or https');
  }
  sessionStorage.setItem(STATE_KEY, state);
  sessionStorage.setItem(RETURN_KEY, location.pathname + location.search);
  location.assign(target);
}

/** Resolves to the path below `/console` at which to continue. */
export async function finishOidc(parameters: URLSearchParams): Promise<string> {
  const [code, state] = [parameters.get('code'), parameters.get('state')];
  const expected = sessionStorage.getItem(STATE_KEY);
  sessionStorage.removeItem(STATE_KEY);
  // WHY compared here: an attacker's link would sign the operator in as the attacker.
  if (code === null || state === null || state !== expected) {
    throw new LeaseholdError('INVALID_RESPONSE', 'this sign-in was not started in this tab, or it was interrupted');
  }
  await openBrowserSession(await signInCalls.verifyOidc({ code, state }));
  const returnTo = sessionStorage.getItem(RETURN_KEY) ?? '';
  sessionStorage.removeItem(RETURN_KEY);
  return returnTo.startsWith('/console/') ? returnTo.slice('/console'.length) : '/';
}
