/** Changes the roles and the description of an operator, on top of the state from which the form was filled. */
import { useState } from 'react';
import type { Tagged } from '../../../../src/client/leasehold.ts';
import type { Operator } from '../../../../src/client/types.ts';
import { CHANGE_EVENTS } from '../../../../src/vault/audit/audit-entry.ts';
import { ROLES, type Role } from '../../../../src/vault/operators/operator.ts';
import { type Conflict, ConflictNotice, findConflict } from '../../components/edit-conflict.tsx';
import { FormDialog, TextField, textOf } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { client } from '../../session/console-client.ts';

interface Props {
  /** Null while the dialog is closed. */
  readonly operator: Tagged<Operator> | null;
  readonly onDone: () => unknown;
  readonly onClose: () => void;
}

export function RolesDialog({ operator, onDone, onClose }: Props) {
  const [opened, setOpened] = useState(operator);
  const [base, setBase] = useState(operator);
  /** The inputs start with this state. */
  const [shown, setShown] = useState(operator);
  const [conflict, setConflict] = useState<Conflict<Operator> | null>(null);
  // When the dialog is opened again, it starts with the current state.
  if (opened !== operator) {
    setOpened(operator);
    setBase(operator);
    setShown(operator);
    setConflict(null);
  }
  const name = base?.data.name ?? '';
  const change = async (values: FormData): Promise<void> => {
    if (base === null) return;
    const body = { roles: rolesOf(values), description: textOf(values, 'description') };
    await client.operators.replace(name, body, { ifMatch: base.tag });
    announce(`The roles of ${name} are changed.`);
    await onDone();
  };
  const explain = async (failure: unknown): Promise<boolean> => {
    const found = await findConflict<Operator>(failure, {
      resource: `operator:${name}`,
      events: CHANGE_EVENTS.operator,
    });
    setConflict(found);
    return found !== null;
  };
  const reload = (): void => {
    setConflict(null);
    if (conflict?.current != null) {
      setBase(conflict.current);
      setShown(conflict.current);
    } else {
      void onDone();
      onClose();
    }
  };
  const keep = (): void => {
    setConflict(null);
    setBase(conflict?.current ?? null);
  };
  return (
    <FormDialog
      isOpen={base !== null}
      title={`Roles of “${name}”`}
      verb="Change"
      onSubmit={change}
      onFailure={explain}
      isHeld={conflict !== null}
      onClose={onClose}
    >
      {shown !== null && (
        <div key={shown.tag} className="form wide-field">
          <RoleFields chosen={shown.data.roles} />
          <TextField label="Description" name="description" defaultValue={shown.data.description} />
        </div>
      )}
      <p className="hint">The change takes effect with the operator’s next request.</p>
      {conflict !== null && (
        <ConflictNotice
          what={`The operator ${name}`}
          conflict={conflict}
          onReload={reload}
          onKeep={conflict.current === null ? null : keep}
        />
      )}
    </FormDialog>
  );
}

const MEANING: Readonly<Record<Role, string>> = {
  viewer: 'sees everything but values',
  approver: 'approves and denies requests',
  editor: 'makes the changes that policies grant it',
  admin: 'everything',
};

export function rolesOf(values: FormData): Role[] {
  return ROLES.filter((role) => values.getAll('role').includes(role));
}

export function RoleFields({ chosen }: { readonly chosen: readonly string[] }) {
  return (
    <fieldset>
      <legend>Roles</legend>
      {ROLES.map((role) => (
        <label key={role} className="choice">
          <input type="checkbox" name="role" value={role} defaultChecked={chosen.includes(role)} />
          <span>
            <strong>{role}</strong>: {MEANING[role]}
          </span>
        </label>
      ))}
    </fieldset>
  );
}
