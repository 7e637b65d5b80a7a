/** The ways to sign in of the signed-in operator, and the session. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { FormTextField, textOf } from '../../components/fields.tsx';
import { FormDialog } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { Facts } from '../../components/side-panel.tsx';
import { EmptyState, ErrorPanel, Loading } from '../../components/states.tsx';
import { Time } from '../../components/texts.tsx';
import { client, renewSession, signInCalls, signOut, useSession } from '../../session/console-client.ts';
import type { SessionIdentity } from '../../session/session-store.ts';
import { addPasskey } from '../../sign-in/passkeys.ts';
import { Passkeys } from './passkey-list.tsx';

export function SignInSection() {
  const session = useSession();
  if (session.kind !== 'signed-in') return null;
  const { identity } = session;
  if (identity.isAdministrator) {
    return (
      <EmptyState title="You use the administrator’s token" command="leasehold operator add NAME --role admin --invite">
        It is for first-time setup and emergencies. It has no passkeys, and its session does not end. Add an operator
        for yourself under Operators, and sign in as that operator.
      </EmptyState>
    );
  }
  return (
    <>
      <OwnPasskeys identity={identity} />
      <section className="setting" aria-label="Session">
        <h2>This session</h2>
        <Facts
          rows={[
            ['Ends when idle', identity.expiresAt === null ? null : <Time key="idle" at={identity.expiresAt} />],
            ['Ends at the latest', identity.endsAt === null ? null : <Time key="end" at={identity.endsAt} />],
          ]}
        />
        <p className="hint">
          It is extended while you use the console. The server does not list sessions: removing a passkey, or replacing
          your key, ends all of them.
        </p>
        <div className="page-actions">
          <button type="button" onClick={() => void renewSession().catch(() => undefined)}>
            Extend it
          </button>
          <button type="button" onClick={() => void signOut().catch(() => undefined)}>
            End it
          </button>
        </div>
      </section>
    </>
  );
}

function OwnPasskeys({ identity: { name } }: { readonly identity: SessionIdentity }) {
  const queries = useQueryClient();
  const [isAdding, setAdding] = useState(false);
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['operators', 'one', name],
    queryFn: ({ signal }) => client.operators.read(name, { signal }),
  });
  const methods = useQuery({ queryKey: ['sign-in-methods'], queryFn: ({ signal }) => signInCalls.methods({ signal }) });
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ['operators'] });
  const add = async (values: FormData): Promise<void> => {
    await addPasskey(textOf(values, 'label'));
    announce('The passkey is registered.');
    await refresh();
  };
  if (error !== null) return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  if (isPending) return <Loading what="your passkeys" />;
  const isPossible = methods.data?.passkey === true;
  return (
    <>
      <Passkeys operator={data} heading="h2" mayRemove onRemoved={refresh} />
      <div className="page-actions">
        <button type="button" className="primary" disabled={!isPossible} onClick={() => setAdding(true)}>
          Add a passkey
        </button>
      </div>
      {methods.data?.passkey === false && (
        <p className="hint">
          Passkeys do not work at this URL. Open the console at <code>http://localhost:{location.port}/console/</code>{' '}
          on the server’s machine, or over HTTPS at one of its public names.
        </p>
      )}
      <FormDialog isOpen={isAdding} title="Add a passkey" verb="Add" onSubmit={add} onClose={() => setAdding(false)}>
        <FormTextField label="Name of this passkey" name="label" isRequired maxLength={64} placeholder="Laptop" />
        <p className="hint">The browser then asks for it.</p>
      </FormDialog>
    </>
  );
}
