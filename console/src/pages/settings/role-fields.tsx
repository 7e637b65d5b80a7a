/** The roles of an operator, each with what it allows. */
import { ROLES, type Role } from '../../../../src/core/operator.ts';

const MEANING: Readonly<Record<Role, string>> = {
  viewer: 'sees everything but values',
  approver: 'answers requests that wait for a person',
  editor: 'changes what policies grant it',
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
