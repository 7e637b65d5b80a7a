/** Signing in: by passkey, by the identity provider, by a one-time code in the URL, or by a pasted token. */
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { PageHeading } from '../components/page-heading.tsx';
import { EmptyState, ErrorPanel } from '../components/states.tsx';
import { openBrowserSession, signInCalls, signInWithToken, useSession } from '../session/console-client.ts';
import { StatusNotice } from '../shell/status-notice.tsx';
import { startOidc } from './oidc.tsx';
import { signInWithPasskey } from './passkeys.ts';
import { readHandoffCode, removeFragment } from './url-codes.ts';

export function SignInPage() {
  const session = useSession();
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const methods = useQuery({
    queryKey: ['sign-in-methods'],
    queryFn: ({ signal }) => signInCalls.methods({ signal }),
  });
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      await work();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  const [handoff, setHandoff] = useState(readHandoffCode);
  useEffect(() => {
    if (handoff !== null) removeFragment();
  }, [handoff]);
  const redeem = (code: string): void => {
    setHandoff(null);
    void attempt(async () => openBrowserSession(await signInCalls.redeemHandoff(code)));
  };
  return (
    <main id="main" className="sign-in">
      <PageHeading title="Sign in to Leasehold" />
      <StatusNotice />
      {session.kind === 'signed-out' && session.reason !== null && <p className="notice warning">{session.reason}</p>}
      {error !== null && <ErrorPanel error={error} />}
      {methods.error !== null && <ErrorPanel error={methods.error} onRetry={() => void methods.refetch()} />}
      {handoff !== null && <HandoffQuestion onAccept={() => redeem(handoff)} onRefuse={() => setHandoff(null)} />}
      {methods.data?.passkey === true && !methods.data.setup && (
        <button type="button" className="primary" disabled={isBusy} onClick={() => void attempt(signInWithPasskey)}>
          Sign in with a passkey
        </button>
      )}
      {methods.data?.oidc != null && !methods.data.setup && (
        <button type="button" className="primary" disabled={isBusy} onClick={() => void attempt(startOidc)}>
          Sign in with {methods.data.oidc.label}
        </button>
      )}
      {methods.data?.passkey === false && !methods.data.setup && (
        <p className="hint">
          Passkeys and the identity provider are not available at this URL. Use localhost, or HTTPS at a name that is
          configured with --public-name.
        </p>
      )}
      <TokenForm isBusy={isBusy} onSubmit={(token) => void attempt(() => signInWithToken(token))} />
      {methods.data?.setup === true && (
        <EmptyState title="No operator exists yet" command="leasehold operator add NAME --role admin">
          Sign in with the administrator’s token: it is in the file daemon.token in the data directory, whose path the
          server prints when it starts. Then add yourself under Settings.
        </EmptyState>
      )}
    </main>
  );
}

interface Answers {
  readonly onAccept: () => void;
  readonly onRefuse: () => void;
}

/**
 * WHY asked: an attacker's link would sign the operator in as the attacker, who then sees the values that the operator
 * stores.
 */
function HandoffQuestion({ onAccept, onRefuse }: Answers) {
  return (
    <section className="notice warning" aria-label="Sign in with this link">
      <p>
        This link signs this browser in as the operator who made it. Continue only if you made it yourself, with{' '}
        <code>leasehold console</code>, a moment ago.
      </p>
      <button type="button" className="primary" onClick={onAccept}>
        Sign in with this link
      </button>{' '}
      <button type="button" onClick={onRefuse}>
        Do not use it
      </button>
    </section>
  );
}

/** WHY an uncontrolled field: the token is in no state of the page, and the field is emptied when it is read. */
function TokenForm({ isBusy, onSubmit }: { readonly isBusy: boolean; readonly onSubmit: (token: string) => void }) {
  const field = useRef<HTMLInputElement>(null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const input = field.current;
    if (input === null || input.value.trim() === '') return;
    const token = input.value;
    input.value = '';
    onSubmit(token);
  };
  return (
    <form className="token-form" onSubmit={submit}>
      <label className="field">
        <span>Token</span>
        <input ref={field} type="password" autoComplete="off" spellCheck={false} required />
      </label>
      <p className="hint">
        The token of an operator’s session, or the administrator’s token. The page does not keep it.
      </p>
      <button type="submit" className="primary" disabled={isBusy}>
        Sign in with the token
      </button>
    </form>
  );
}
