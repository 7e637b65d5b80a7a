/** `/console/callback`: the page to which the identity provider redirects. */
import { useEffect, useRef, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { ErrorPanel } from '../components/error-panel.tsx';
import { PageHeading } from '../components/page-heading.tsx';
import { finishOidc } from './oidc.ts';

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
