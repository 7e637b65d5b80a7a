/** Changes the roles and the description of an operator, on top of the state from which the form was filled. */
import { useState } from 'react';
import type { Tagged } from '../../../../src/client/leasehold.ts';
import type { Operator } from '../../../../src/client/types.ts';
import { ROLES, type Role } from '../../../../src/vault/operators/operator.ts';
import { useEdit } from '../../components/edit-conflict.tsx';
import { FormTextField, textOf } from '../../components/fields.tsx';
import { FormDialog } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { client } from '../../session/console-client.ts';

interface Props {
  readonly operator: Tagged<Operator>;
  readonly onDone: () => unknown;
  readonly onClose: () => void;
}

export function RolesDialog({ operator, onDone, onClose }: Props) {
  /** The inputs start with this state. */
  const [shown, setShown] = useState(operator);
  const { name } = operator.data;
  const { base, isBlocked, catchConflict, notice } = useEdit(operator, {
    subject: { what: `The operator ${name}`, kind: 'operator', name },
    keeps: 'if it exists',
    onReload: (current) => {
      if (current !== null) return setShown(current);
      void onDone();
      onClose();
    },
  });
  const change = async (values: FormData): Promise<void> => {
    if (base === null) return;
    const body = { roles: rolesOf(values), description: textOf(values, 'description') };
    await client.operators.replace(name, body, { ifMatch: base.tag });
    announce(`The roles of ${name} are changed.`);
    await onDone();
  };
  return (
    <FormDialog
      isOpen
      title={`Roles of “${name}”`}
      verb="Change"
      onSubmit={change}
      onFailure={catchConflict}
      isHeld={isBlocked}
      onClose={onClose}
    >
      <div key={shown.tag} className="form wide-field">
        <RoleFields chosen={shown.data.roles} />
        <FormTextField label="Description" name="description" defaultValue={shown.data.description} />
      </div>
      <p className="hint">The change takes effect with the operator’s next request.</p>
      {notice}
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
