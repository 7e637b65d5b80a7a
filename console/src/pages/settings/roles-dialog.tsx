/** Changes the roles and the description of an operator, on top of the state that the form was filled with. */
import { useState } from 'react';
import type { Tagged } from '../../../../src/client/leasehold.ts';
import type { Operator } from '../../../../src/client/types.ts';
import { type Conflict, ConflictNotice, FieldChanges, findConflict } from '../../components/edit-conflict.tsx';
import { FormDialog, TextField, textOf } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { mergeEdit } from '../../components/merge-edit.ts';
import { client } from '../../session/console-client.ts';
import { RoleFields, rolesOf } from './role-fields.tsx';

interface Props {
  /** Null while the dialog is closed. */
  readonly operator: Tagged<Operator> | null;
  readonly onDone: () => unknown;
  readonly onClose: () => void;
}

type Fields = Pick<Operator, 'roles' | 'description'>;

/** The fields of the form, the state that it changes, and the state that another operator has stored. */
interface Edit {
  readonly base: Tagged<Operator>;
  readonly fields: Fields;
  /** The fields of the form when it was sent and not saved. */
  readonly mine: Fields | null;
  readonly conflict: Conflict<Operator> | null;
  /** Counts the times that the form was filled. */
  readonly round: number;
}

const begin = (base: Tagged<Operator>): Edit => ({ base, fields: base.data, mine: null, conflict: null, round: 0 });

function fieldsOf({ roles, description, public_key, passkeys, identity }: Operator) {
  return {
    roles,
    description: [description],
    'public key': public_key === null ? [] : [public_key],
    passkeys: passkeys.map(({ label }) => label),
    identity: identity === null ? [] : [`${identity.subject ?? identity.email} at ${identity.issuer}`],
  };
}

function findOperatorConflict(failure: unknown, name: string): Promise<Conflict<Operator> | null> {
  return findConflict(failure, {
    read: () => client.operators.readTagged(name),
    resource: `operator:${name}`,
    events: [
      'operator.add',
      'operator.replace',
      'operator.rotate',
      'operator.remove',
      'operator.passkey_add',
      'operator.passkey_remove',
    ],
  });
}

export function RolesDialog({ operator, onDone, onClose }: Props) {
  const [opened, setOpened] = useState(operator);
  const [edit, setEdit] = useState<Edit | null>(null);
  // Another opening begins with the state of that moment.
  if (opened !== operator) {
    setOpened(operator);
    setEdit(operator === null ? null : begin(operator));
  }
  const name = edit?.base.data.name ?? '';
  const change = async (values: FormData): Promise<void> => {
    if (edit === null) return;
    const body = { roles: rolesOf(values), description: textOf(values, 'description') };
    await client.operators.replace(name, body, { ifMatch: edit.base.tag });
    announce(`The roles of ${name} are changed.`);
    await onDone();
  };
  const explain = async (failure: unknown, values: FormData): Promise<boolean> => {
    const conflict = await findOperatorConflict(failure, name);
    if (conflict === null || edit === null) return false;
    const mine = { roles: rolesOf(values), description: textOf(values, 'description') };
    setEdit({ ...edit, mine, conflict });
    return true;
  };
  /** Fills the form again, on the present state. */
  const fill = (toFields: (edit: Edit, current: Operator) => Fields): void => {
    const current = edit?.conflict?.current ?? null;
    if (edit === null || current === null) {
      void onDone();
      onClose();
      return;
    }
    const fields = toFields(edit, current.data);
    setEdit({ base: current, fields, mine: null, conflict: null, round: edit.round + 1 });
  };
  const pick = ({ roles, description }: Fields): Fields => ({ roles, description });
  const merge = ({ base, mine, fields }: Edit, current: Operator): Fields =>
    mergeEdit(pick(base.data), mine ?? pick(fields), pick(current));
  const conflict = edit?.conflict ?? null;
  return (
    <FormDialog
      isOpen={edit !== null}
      title={`Roles of “${name}”`}
      verb="Change"
      onSubmit={change}
      onFailure={explain}
      isHeld={conflict !== null}
      onClose={onClose}
    >
      {edit !== null && (
        <div key={edit.round} className="form wide-field">
          <RoleFields chosen={edit.fields.roles} />
          <TextField label="Description" name="description" defaultValue={edit.fields.description} />
          {edit.round > 0 && (
            <FieldChanges before={fieldsOf(edit.base.data)} after={fieldsOf({ ...edit.base.data, ...edit.fields })} />
          )}
        </div>
      )}
      <p className="hint">The change takes effect with the operator’s next request.</p>
      {edit !== null && conflict !== null && (
        <ConflictNotice
          what={`The operator ${name}`}
          conflict={conflict}
          hint={
            conflict.current === null
              ? 'Reload closes this form. Add the operator again if it was removed by mistake.'
              : 'Reload discards your changes. Apply on top adds them to that change, and shows the result before you save it.'
          }
          onReload={() => fill((_, current) => current)}
          {...(conflict.current === null ? {} : { onMerge: () => fill(merge) })}
        >
          {conflict.current !== null && (
            <FieldChanges before={fieldsOf(edit.base.data)} after={fieldsOf(conflict.current.data)} />
          )}
        </ConflictNotice>
      )}
    </FormDialog>
  );
}
