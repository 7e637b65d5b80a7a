/** Key slots, which open the vault, and the rotation of its keys. No slot secret enters the page. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { KeySlot, RotatedKey } from '../../../../src/client/types.ts';
import { ConfirmDialog } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { RoleButton } from '../../components/role-button.tsx';
import { ErrorPanel, QueryState } from '../../components/states.tsx';
import { Badge, Copyable, Time } from '../../components/texts.tsx';
import { client } from '../../session/console-client.ts';

/** Manual slots, whose secret an operator computes with the CLI. */
const ATTENDED: ReadonlySet<string> = new Set(['passphrase', 'shamir']);

export function KeySection() {
  const queries = useQueryClient();
  const [removing, setRemoving] = useState<string | null>(null);
  const slots = useQuery({
    queryKey: ['key-slots'],
    queryFn: ({ signal }) => client.keys.slots({ signal }),
  });
  const remove = async (): Promise<void> => {
    await client.keys.removeSlot(removing ?? '');
    announce('The slot is removed.');
    await queries.invalidateQueries({ queryKey: ['key-slots'] });
  };
  return (
    <>
      <section className="setting" aria-label="Key slots">
        <h2>Key slots</h2>
        <p>Any one slot opens the vault at startup. Keep at least two, of different kinds.</p>
        <QueryState query={slots} what="the slots" />
        <ul className="rows">
          {slots.data?.map((slot, _, { length }) => (
            <Slot key={slot.name} slot={slot} isLast={length === 1} onRemove={() => setRemoving(slot.name)} />
          ))}
        </ul>
        <p>Add slots with the CLI, so that the secret never enters the browser:</p>
        <Copyable text="leasehold key slot add recovery --kind shamir --shares 5 --threshold 3" what="the command" />
      </section>
      <Rotation />
      <ConfirmDialog
        isOpen={removing !== null}
        title={`Remove the slot “${removing ?? ''}”?`}
        verb="Remove"
        typed={removing ?? ''}
        onConfirm={remove}
        onClose={() => setRemoving(null)}
      >
        <p>
          Its secret will no longer open the vault, but it still opens copies of the database and backups from before
          the removal. If the secret was disclosed, replace the root key and then the data key. This cannot be undone.
        </p>
      </ConfirmDialog>
    </>
  );
}

interface SlotProps {
  readonly slot: KeySlot;
  readonly isLast: boolean;
  readonly onRemove: () => void;
}

function Slot({ slot: { name, kind, created_at }, isLast, onRemove }: SlotProps) {
  const isAttended = ATTENDED.has(kind);
  const { mutate, data, error, isPending } = useMutation({ mutationFn: () => client.keys.testSlot(name, null) });
  return (
    <li className="passkey">
      <div>
        <strong>{name}</strong> <Badge text={kind} />
        <p className="hint">
          added <Time at={created_at} />
          {isAttended ? ', manual' : ', unattended'}
        </p>
        {data !== undefined && (
          <p role="status">
            <Badge text={data.opens ? 'opens the vault' : 'does not open it'} tone={data.opens ? 'good' : 'danger'} />{' '}
            {data.problem}
          </p>
        )}
        {isAttended && (
          <p className="hint">
            Test it where its secret is: <code>leasehold key slot test {name}</code>
          </p>
        )}
        {isLast && <p className="hint">The last slot cannot be removed.</p>}
        {error !== null && <ErrorPanel error={error} />}
      </div>
      <div className="page-actions">
        {!isAttended && (
          <RoleButton
            needs="admin"
            className="small"
            disabled={isPending}
            aria-label={`Test the slot ${name}`}
            onClick={() => mutate()}
          >
            Test
          </RoleButton>
        )}
        <RoleButton
          needs="admin"
          className="small"
          disabled={isLast}
          aria-label={`Remove the slot ${name}`}
          onClick={onRemove}
        >
          Remove
        </RoleButton>
      </div>
    </li>
  );
}

const KEYS: readonly {
  readonly key: RotatedKey['key'];
  readonly event: string;
  readonly title: string;
  readonly what: string;
}[] = [
  {
    key: 'data',
    event: 'key.rotate',
    title: 'Data key',
    what: 'It encrypts values. Earlier values are re-encrypted in the background; the previous key is then removed.',
  },
  {
    key: 'root',
    event: 'key.rotate_root',
    title: 'Root key',
    what: 'It encrypts the other keys, and is encrypted for every slot.',
  },
  {
    key: 'audit',
    event: 'key.rotate_audit',
    title: 'Audit key',
    what: 'It authenticates new audit entries. Give auditors both keys: leasehold audit key.',
  },
];

/** The newest entry of the event. Only the audit log knows when a key was replaced. */
function useNewest(event_type: string) {
  const { data } = useQuery({
    queryKey: ['newest', event_type],
    queryFn: ({ signal }) => client.audit.list({ event_type, result: 'allowed', limit: 1 }, { signal }),
  });
  return data?.data[0] ?? null;
}

function Rotation() {
  const queries = useQueryClient();
  const [rotating, setRotating] = useState<(typeof KEYS)[number] | null>(null);
  const rotate = async (): Promise<void> => {
    if (rotating === null) return;
    await client.keys.rotate(rotating.key);
    announce(`The ${rotating.title.toLowerCase()} is replaced.`);
    await queries.invalidateQueries({ queryKey: ['newest'] });
  };
  return (
    <section className="setting" aria-label="Rotation">
      <h2>Rotation</h2>
      <ul className="rows">
        {KEYS.map((row) => (
          <KeyRow key={row.key} row={row} onRotate={() => setRotating(row)} />
        ))}
      </ul>
      <Reencryption />
      <ConfirmDialog
        isOpen={rotating !== null}
        title={`Replace the ${rotating?.title.toLowerCase() ?? ''}?`}
        verb="Replace"
        onConfirm={rotate}
        onClose={() => setRotating(null)}
      >
        <p>{rotating?.what} Clients are not affected. The key itself is never shown.</p>
      </ConfirmDialog>
    </section>
  );
}

interface KeyRowProps {
  readonly row: (typeof KEYS)[number];
  readonly onRotate: () => void;
}

function KeyRow({ row: { event, title, what }, onRotate }: KeyRowProps) {
  const newest = useNewest(event);
  return (
    <li className="passkey">
      <div>
        <strong>{title}</strong>
        <p className="hint">{what}</p>
        <p className="hint">
          Last replaced: {newest === null && 'never'}
          {newest !== null && <Time at={newest.timestamp} />}
        </p>
      </div>
      <RoleButton needs="admin" className="small" aria-label={`Replace the ${title.toLowerCase()}`} onClick={onRotate}>
        Replace
      </RoleButton>
    </li>
  );
}

function Reencryption() {
  const [rotated, retired] = [useNewest('key.rotate'), useNewest('key.retire')];
  if (rotated === null) return null;
  const isDone = retired !== null && retired.seq > rotated.seq;
  return (
    <p role="status">
      {isDone ? 'Every value is encrypted under the newest data key.' : 'Earlier values are being re-encrypted.'}
    </p>
  );
}
