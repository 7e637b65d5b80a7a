/** Operators: their names, their roles, and their ways to sign in. */
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { useSearchParams } from 'wouter';
import type { OneTimeCode, Operator } from '../../../../src/client/types.ts';
import { DataTable, type TableColumn } from '../../components/data-table.tsx';
import { FormTextField, textOf } from '../../components/fields.tsx';
import { useSetParameters } from '../../components/filter-bar.tsx';
import { FormDialog } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { usePagedRows } from '../../components/paged-rows.ts';
import { RoleButton, RoleHint } from '../../components/role-button.tsx';
import { EmptyState, ErrorPanel } from '../../components/states.tsx';
import { Copyable, Time } from '../../components/texts.tsx';
import { countText } from '../../components/words.ts';
import { client } from '../../session/console-client.ts';
import { OperatorPanel } from './operator-panel.tsx';
import { RoleFields, rolesOf } from './roles-dialog.tsx';

function waysOf({ public_key, passkeys, identity }: Operator): string {
  const ways = [
    ...(public_key === null ? [] : ['key']),
    ...(passkeys.length === 0 ? [] : [countText(passkeys.length, 'passkey')]),
    ...(identity === null ? [] : [`identity at ${identity.issuer}`]),
  ];
  return ways.length === 0 ? 'not set up: invite again' : ways.join(', ');
}

const COLUMNS: readonly TableColumn<Operator>[] = [
  { title: 'Name', width: 'minmax(8rem, 1fr)', cell: ({ name }) => name },
  { title: 'Roles', width: 'minmax(9rem, 1fr)', cell: ({ roles }) => roles.join(', ') },
  { title: 'Signs in by', width: 'minmax(9rem, 2fr)', cell: waysOf },
  { title: 'Description', width: 'minmax(8rem, 2fr)', cell: ({ description }) => description },
  { title: 'Added', width: '11rem', cell: ({ added_at }) => <Time at={added_at} /> },
];
const nameOf = ({ name }: Operator): string => name;

export function OperatorsSection() {
  const [parameters] = useSearchParams();
  const setParameters = useSetParameters();
  const open = parameters.get('operator');
  const [isAdding, setAdding] = useState(false);
  const [invited, setInvited] = useState<{ name: string; code: OneTimeCode } | null>(null);
  const rows = usePagedRows<Operator>({
    queryKey: ['operators', 'list'],
    read: (page, signal) => client.operators.list(page, { signal }),
  });
  return (
    <>
      <div className="page-actions">
        <RoleButton needs="admin" className="primary" onClick={() => setAdding(true)}>
          Add an operator
        </RoleButton>
        <RoleHint needs="admin" verb="Changing operators" />
      </div>
      {invited !== null && <Invitation {...invited} onClose={() => setInvited(null)} />}
      {rows.error !== null && <ErrorPanel error={rows.error} onRetry={rows.refetch} />}
      <div className="split">
        <DataTable
          label="Operators by name"
          columns={COLUMNS}
          rows={rows}
          keyOf={nameOf}
          openKey={open}
          onOpen={({ name }) => setParameters({ operator: name })}
          empty={
            <EmptyState title="No operator exists yet" command="leasehold operator add NAME --role admin --invite">
              Everyone shares the administrator’s token, so the audit log cannot tell operators apart. Add yourself
              first, with the role admin and a passkey.
            </EmptyState>
          }
        />
        {open !== null && (
          <OperatorPanel
            key={open}
            name={open}
            onInvited={(code) => setInvited({ name: open, code })}
            onClose={() => setParameters({ operator: null })}
          />
        )}
      </div>
      <AddDialog
        isOpen={isAdding}
        onInvited={(name, code) => setInvited({ name, code })}
        onClose={() => setAdding(false)}
      />
    </>
  );
}

interface AddProps {
  readonly isOpen: boolean;
  readonly onInvited: (name: string, code: OneTimeCode) => void;
  readonly onClose: () => void;
}

function AddDialog({ isOpen, onInvited, onClose }: AddProps) {
  const queries = useQueryClient();
  const [way, setWay] = useState('invitation');
  const add = async (values: FormData): Promise<void> => {
    const [name, description] = [textOf(values, 'name'), textOf(values, 'description')];
    const [key, subject] = [textOf(values, 'public_key'), textOf(values, 'subject')];
    const identity = subject.includes('@') ? { email: subject } : { subject };
    await client.operators.add({
      name,
      description,
      roles: rolesOf(values),
      ...(key === '' ? {} : { public_key: key }),
      ...(subject === '' ? {} : { identity }),
    });
    await queries.invalidateQueries({ queryKey: ['operators'] });
    if (way === 'invitation') onInvited(name, await client.operators.invite(name));
    else announce(`The operator ${name} is added.`);
  };
  return (
    <FormDialog isOpen={isOpen} title="Add an operator" verb="Add" onSubmit={add} onClose={onClose}>
      <FormTextField label="Name" name="name" isRequired maxLength={64} placeholder="alice" />
      <FormTextField label="Description (optional)" name="description" />
      <RoleFields chosen={['viewer']} />
      <label className="field">
        <span>Signs in</span>
        <select value={way} onChange={({ target }) => setWay(target.value)}>
          <option value="invitation">by passkey, with an invitation</option>
          <option value="key">by key, with the CLI</option>
          <option value="identity">at the identity provider</option>
        </select>
      </label>
      {way === 'key' && <FormTextField label="Public key, base64 of its 32 bytes" name="public_key" isRequired />}
      {way === 'identity' && <FormTextField label="Subject or e-mail address" name="subject" isRequired />}
    </FormDialog>
  );
}

interface Props {
  readonly name: string;
  readonly code: OneTimeCode;
  readonly onClose: () => void;
}

/** The origin for passkeys, which do not work at an IP address, but at the name of this machine. */
function originForPasskeys(): string {
  return location.origin.replace(/^http:\/\/(?:127\.0\.0\.1|\[::1\])(?=:|$)/, 'http://localhost');
}

function Invitation({ name, code: { code, expires_at }, onClose }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <section className="invitation" aria-label={`Invitation of ${name}`}>
      <h2 ref={heading} tabIndex={-1}>
        Send this link to {name}
      </h2>
      <p>
        It registers one passkey, once, until <Time at={expires_at} />. Send it only to that operator. It is not shown
        again.
      </p>
      <Copyable text={`${originForPasskeys()}/console/enrol#${code}`} what="the link" />
      <button type="button" onClick={onClose}>
        Hide the link
      </button>
    </section>
  );
}
