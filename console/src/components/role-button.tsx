/** A button that is enabled for operators with a role, and otherwise names the role. The server enforces roles itself. */
import type { ComponentProps } from 'react';
import type { Role } from '../../../src/vault/operators/operator.ts';
import { useRole } from '../session/console-client.ts';

interface Props extends Omit<ComponentProps<'button'>, 'type' | 'title' | 'role'> {
  readonly needs: Role;
}

export function RoleButton({ needs, disabled = false, ...button }: Props) {
  const isAllowed = useRole(needs);
  return (
    <button
      type="button"
      disabled={!isAllowed || disabled}
      title={isAllowed ? undefined : `Requires the ${needs} role`}
      {...button}
    />
  );
}

/** States the role that the changes on a page require, to operators without it. */
export function RoleHint({ needs, verb }: { readonly needs: Role; readonly verb?: string }) {
  if (useRole(needs)) return null;
  return (
    <p className="hint">
      {verb === undefined ? 'Requires' : `${verb} requires`} the {needs} role.
    </p>
  );
}
