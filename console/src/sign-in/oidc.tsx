/** Signing in with the identity provider: the state that only this tab knows, and the page of the redirect. */

import { useEffect, useRef, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { LeaseholdError } from '../../../src/client/errors.ts';
import { PageHeading } from '../components/page-heading.tsx';
import { ErrorPanel } from '../components/states.tsx';
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

/** `/console/callback`: the page to which the identity provider redirects. */
export function CallbackPage() {
  const [, navigate] = useLocation();
  const [error, setError] = useState<unknown>(null);
  const isStarted = useRef(false);
  useEffect(() => {
    if (isStarted.current) return;
    isStarted.current = true;
    finishOidc(new URLSearchParams(location.search)).then((path) => navigate(path, { replace: true }), setError);
  }, [navigate]);
  return (
    <main id="main" className="sign-in">
      <PageHeading title="Signing in" />
      {error === null ? <p role="status">Checking with the server…</p> : <ErrorPanel error={error} />}
      {error !== null && <Link href="/">Sign in another way</Link>}
    </main>
  );
}
