/** One operator: roles, ways to sign in, and removal. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Tagged } from '../../../../src/client/leasehold.ts';
import type { OneTimeCode, Operator } from '../../../../src/client/types.ts';
import { refreshOnConflict } from '../../components/edit-conflict.tsx';
import { FormTextField, textOf } from '../../components/fields.tsx';
import { ConfirmDialog, FormDialog } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { RoleButton } from '../../components/role-button.tsx';
import { Facts, SidePanel } from '../../components/side-panel.tsx';
import { ErrorPanel, QueryState } from '../../components/states.tsx';
import { Copyable, EntriesLink, Time } from '../../components/texts.tsx';
import { client, useRole } from '../../session/console-client.ts';
import { Passkeys } from './passkey-list.tsx';
import { RolesDialog } from './roles-dialog.tsx';

interface Props {
  readonly name: string;
  readonly onInvited: (code: OneTimeCode) => void;
  readonly onClose: () => void;
}

/** Limit of the read, because operators are few. Beyond it, another admin is assumed, and the server decides. */
const MAX_READ = 1000;

function useIsLastAdmin(operator: Operator | undefined): boolean {
  const { data } = useQuery({
    queryKey: ['operators', 'admins'],
    queryFn: ({ signal }) => client.operators.list({ limit: MAX_READ }, { signal }),
  });
  if (data === undefined || operator === undefined || data.meta.total > MAX_READ) return false;
  return operator.roles.includes('admin') && data.data.filter(({ roles }) => roles.includes('admin')).length === 1;
}

export function OperatorPanel({ name, onInvited, onClose }: Props) {
  const isAdmin = useRole('admin');
  const queries = useQueryClient();
  const read = useQuery({
    queryKey: ['operators', 'tagged', name],
    queryFn: ({ signal }) => client.operators.readTagged(name, { signal }),
  });
  const { data } = read;
  const operator = data?.data;
  const isLastAdmin = useIsLastAdmin(operator);
  const [dialog, setDialog] = useState<'key' | 'remove' | null>(null);
  const [edited, setEdited] = useState<Tagged<Operator> | null>(null);
  const [inviteError, setInviteError] = useState<unknown>(null);
  const close = (): void => setDialog(null);
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ['operators'] });
  const invite = (): void => {
    setInviteError(null);
    client.operators.invite(name).then(onInvited, setInviteError);
  };
  return (
    <SidePanel title={name} onClose={onClose}>
      <QueryState query={read} what="the operator" />
      {inviteError !== null && <ErrorPanel error={inviteError} />}
      {data !== undefined && operator !== undefined && (
        <>
          <OperatorFacts operator={operator} />
          <div className="page-actions">
            <RoleButton needs="admin" onClick={() => setEdited(data)}>
              Change roles
            </RoleButton>
            <RoleButton needs="admin" onClick={invite}>
              Invite again
            </RoleButton>
            <RoleButton needs="admin" onClick={() => setDialog('key')}>
              Replace the key
            </RoleButton>
            <RoleButton needs="admin" className="danger" disabled={isLastAdmin} onClick={() => setDialog('remove')}>
              Remove
            </RoleButton>
          </div>
          {isLastAdmin && (
            <p className="hint">
              {name} is the only operator with the role admin, so it can neither be removed nor lose the role. Give the
              role to another operator first.
            </p>
          )}
          <Passkeys operator={operator} heading="h3" mayRemove={isAdmin} onRemoved={refresh} />
          <EntriesLink principal={`operator:${name}`} />
          {edited !== null && <RolesDialog operator={edited} onDone={refresh} onClose={() => setEdited(null)} />}
          <KeyDialog name={name} isOpen={dialog === 'key'} onDone={refresh} onClose={close} />
          <RemoveDialog name={name} tag={data.tag} isOpen={dialog === 'remove'} onDone={onClose} onClose={close} />
        </>
      )}
    </SidePanel>
  );
}

function OperatorFacts({
  operator: { roles, description, public_key, identity, added_at },
}: {
  readonly operator: Operator;
}) {
  return (
    <Facts
      rows={[
        ['Roles', roles.join(', ')],
        ['Description', description === '' ? null : description],
        ['Public key', public_key === null ? null : <Copyable key="key" text={public_key} what="the public key" />],
        ['Identity', identity === null ? null : `${identity.subject ?? identity.email} at ${identity.issuer}`],
        ['Added', <Time key="at" at={added_at} />],
      ]}
    />
  );
}

interface DialogProps {
  readonly isOpen: boolean;
  readonly onDone: () => unknown;
  readonly onClose: () => void;
}

function KeyDialog({ name, isOpen, onDone, onClose }: DialogProps & { readonly name: string }) {
  const rotate = async (values: FormData): Promise<void> => {
    await client.operators.rotate(name, { public_key: textOf(values, 'public_key') });
    announce(`The key of ${name} is replaced.`);
    await onDone();
  };
  return (
    <FormDialog
      isOpen={isOpen}
      title={`Replace the key of “${name}”`}
      verb="Replace"
      onSubmit={rotate}
      onClose={onClose}
    >
      <p>All sessions and leases of {name} end immediately.</p>
      <FormTextField label="Public key, base64 of its 32 bytes" name="public_key" isRequired />
      <p className="hint">
        The CLI creates the key and replaces it in one step: <code>leasehold operator rotate {name}</code>
      </p>
    </FormDialog>
  );
}

function RemoveDialog({
  name,
  tag,
  isOpen,
  onDone,
  onClose,
}: DialogProps & { readonly name: string; readonly tag: string }) {
  const queries = useQueryClient();
  const remove = async (): Promise<void> => {
    const refresh = () => queries.invalidateQueries({ queryKey: ['operators'] });
    await refreshOnConflict(client.operators.remove(name, { ifMatch: tag }), refresh);
    announce(`The operator ${name} is removed.`);
    onDone();
    await queries.invalidateQueries({ queryKey: ['operators', 'list'] });
    await queries.invalidateQueries({ queryKey: ['operators', 'admins'] });
    queries.removeQueries({ queryKey: ['operators', 'one', name] });
    queries.removeQueries({ queryKey: ['operators', 'tagged', name] });
  };
  return (
    <ConfirmDialog
      isOpen={isOpen}
      title={`Remove “${name}”?`}
      verb="Remove"
      typed={name}
      onConfirm={remove}
      onClose={onClose}
    >
      <p>
        All its sessions and leases end immediately, and its key and passkeys are deleted. Policies that name it and the
        audit log are kept. This cannot be undone.
      </p>
    </ConfirmDialog>
  );
}
