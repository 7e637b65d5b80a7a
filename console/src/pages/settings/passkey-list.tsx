/** The passkeys of an operator. */
import { useState } from 'react';
import type { Operator, Passkey } from '../../../../src/client/types.ts';
import { ConfirmDialog } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { Time } from '../../components/texts.tsx';
import { client } from '../../session/console-client.ts';

interface Props {
  readonly operator: Operator;
  readonly heading: 'h2' | 'h3';
  readonly mayRemove: boolean;
  readonly onRemoved: () => unknown;
}

export function Passkeys({ operator: { name, passkeys }, heading: Heading, mayRemove, onRemoved }: Props) {
  const [removing, setRemoving] = useState<Passkey | null>(null);
  const remove = async (): Promise<void> => {
    if (removing === null) return;
    await client.operators.removePasskey(name, removing.id);
    announce('The passkey is removed.');
    await onRemoved();
  };
  return (
    <section aria-label="Passkeys">
      <Heading>Passkeys</Heading>
      {passkeys.length === 0 && <p className="hint">None.</p>}
      <ul className="rows">
        {passkeys.map((passkey) => (
          <li key={passkey.id} className="passkey">
            <div>
              {passkey.label}
              <p className="hint">
                added <Time at={passkey.added_at} />
                {passkey.synced ? ', on all devices of its account' : ', on one device'}
              </p>
            </div>
            <button
              type="button"
              className="small"
              disabled={!mayRemove}
              aria-label={`Remove the passkey ${passkey.label}`}
              onClick={() => setRemoving(passkey)}
            >
              Remove
            </button>
          </li>
        ))}
      </ul>
      <ConfirmDialog
        isOpen={removing !== null}
        title={`Remove the passkey “${removing?.label ?? ''}”?`}
        verb="Remove"
        onConfirm={remove}
        onClose={() => setRemoving(null)}
      >
        <p>All sessions and leases of {name} end immediately. The passkey can be registered again.</p>
      </ConfirmDialog>
    </section>
  );
}
