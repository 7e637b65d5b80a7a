/** The targets of a credential, and the placement of its value in a request. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { CredentialTargets } from '../../../../src/client/types.ts';
import { refreshOnConflict } from '../../components/edit-conflict.tsx';
import { ConfirmDialog } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { Facts } from '../../components/side-panel.tsx';
import { QueryState } from '../../components/states.tsx';
import { client, useRole } from '../../session/console-client.ts';
import { forgetCredentials, readTargets } from './credential-queries.ts';
import { TargetsDialog } from './targets-dialog.tsx';

function placementText(placement: CredentialTargets['placement']): string {
  switch (placement.kind) {
    case 'bearer':
      return 'Authorization: Bearer …';
    case 'header':
      return `header ${placement.name}: ${placement.template}`;
    case 'basic':
      return placement.username === undefined ? 'Basic, user:password' : `Basic, as ${placement.username}`;
    case 'query':
      return `query parameter ${placement.name}`;
  }
}

export function TargetsSection({ path }: { readonly path: string }) {
  const isEditor = useRole('editor');
  const [dialog, setDialog] = useState<'edit' | 'delete' | null>(null);
  const read = useQuery({
    queryKey: ['targets', path],
    queryFn: ({ signal }) => readTargets(path, signal),
  });
  const { data } = read;
  const targets = data?.data;
  const remove = async (): Promise<void> => {
    const deletion = client.targets.delete(path, data == null ? {} : { ifMatch: data.tag });
    await refreshOnConflict(deletion, () => read.refetch());
    announce(`The targets of ${path} are deleted.`);
    await forgetCredentials();
  };
  return (
    <section className="panel-section" aria-label="Targets">
      <h3>Targets</h3>
      <QueryState query={read} what="the targets" />
      {data === null && <p>The credential has no targets, so it can be retrieved but not used.</p>}
      {targets !== undefined && (
        <>
          <Facts
            rows={[
              ['service', targets.service],
              ['placement', placementText(targets.placement)],
            ]}
          />
          <ul>
            {targets.targets.map((target) => (
              <li key={JSON.stringify(target)}>
                <code>{target.origin}</code> {target.paths.join(' ')} ({target.methods.join(', ')})
              </li>
            ))}
          </ul>
        </>
      )}
      {isEditor && data !== undefined && (
        <div className="buttons">
          <button type="button" onClick={() => setDialog('edit')}>
            {data === null ? 'Set targets…' : 'Edit targets…'}
          </button>
          {data !== null && (
            <button type="button" onClick={() => setDialog('delete')}>
              Delete targets…
            </button>
          )}
        </div>
      )}
      {dialog === 'edit' && <TargetsDialog path={path} targets={data ?? null} onClose={() => setDialog(null)} />}
      <ConfirmDialog
        isOpen={dialog === 'delete'}
        title="Delete the targets?"
        verb="Delete the targets"
        onConfirm={remove}
        onClose={() => setDialog(null)}
      >
        <p>
          <code>{path}</code> can then not be used, and its use leases end. The value and its versions stay.
        </p>
      </ConfirmDialog>
    </section>
  );
}
