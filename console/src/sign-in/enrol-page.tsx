/** `/console/enrol#CODE`: registers a passkey with a one-time code from an administrator. */
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { Link } from 'wouter';
import { PageHeading } from '../components/page-heading.tsx';
import { EmptyState, ErrorPanel } from '../components/states.tsx';
import { signInCalls } from '../session/console-client.ts';
import { enrolPasskey } from './passkeys.ts';
import { readEnrolmentCode, removeFragment } from './url-codes.ts';

export function EnrolPage() {
  const [code] = useState(readEnrolmentCode);
  useEffect(removeFragment, []);
  const [isDone, setDone] = useState(false);
  const [error, setError] = useState<unknown>(null);
  // Their challenge is not used, because the button requests another one.
  const options = useQuery({
    queryKey: ['enrolment'],
    queryFn: ({ signal }) => signInCalls.registrationOptions({ code: code ?? '' }, { signal }),
    enabled: code !== null && !isDone,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const name = options.data?.options.user.name;
  const label = useRef<HTMLInputElement>(null);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setError(null);
    try {
      await enrolPasskey(code ?? '', label.current?.value ?? '');
      setDone(true);
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <main id="main" className="sign-in">
      <PageHeading title="Register a passkey" />
      {error !== null && <ErrorPanel error={error} />}
      {code === null && (
        <EmptyState title="This invitation link is incomplete">
          Ask an administrator for a new link. Each link works once, until it expires.
        </EmptyState>
      )}
      {isDone && (
        <p role="status">
          The passkey is registered. <Link href="/">Sign in</Link>
        </p>
      )}
      {options.error !== null && <ErrorPanel error={options.error} />}
      {name !== undefined && !isDone && (
        <form className="token-form" onSubmit={(event) => void submit(event)}>
          <p>
            The passkey signs in as the operator <strong>{name}</strong>. Continue only if that is you.
          </p>
          <label className="field">
            <span>Name of this passkey</span>
            <input ref={label} required maxLength={100} placeholder="Laptop" autoComplete="off" />
          </label>
          <button type="submit" className="primary">
            Register
          </button>
        </form>
      )}
    </main>
  );
}
