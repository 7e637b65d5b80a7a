/** One credential: metadata and versions, its value on request, its targets, its exposure, and its access. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import type { CredentialMetadata } from '../../../../src/client/types.ts';
import { refreshOnConflict } from '../../components/edit-conflict.tsx';
import { ConfirmDialog } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { RoleHint } from '../../components/role-button.tsx';
import { Facts, SidePanel } from '../../components/side-panel.tsx';
import { QueryState } from '../../components/states.tsx';
import { Time } from '../../components/texts.tsx';
import { countText } from '../../components/words.ts';
import { client, useRole } from '../../session/console-client.ts';
import { forgetDeleted } from './credential-queries.ts';
import { ExposureSection } from './exposure-section.tsx';
import { Reveal } from './reveal.tsx';
import { StoreDialog } from './store-dialog.tsx';
import { TargetsSection } from './targets-section.tsx';

interface Props {
  readonly path: string;
  readonly onClose: () => void;
}

export function CredentialPanel({ path, onClose }: Props) {
  const credential = useQuery({
    queryKey: ['credential', path],
    queryFn: ({ signal }) => client.credentials.readMetadataTagged(path, { signal }),
  });
  const { data: read } = credential;
  const newest = Math.max(0, ...(read?.data.versions.map(({ version }) => version) ?? []));
  return (
    <SidePanel title={path} onClose={onClose}>
      <QueryState query={credential} what="the credential" />
      {read !== undefined && (
        <>
          <Metadata credential={read.data} />
          <Reveal path={path} />
          <TargetsSection path={path} />
          <ExposureSection path={path} newest={newest} />
          <Link href={`/access?view=matrix&prefix=${encodeURIComponent(path)}`}>Show access</Link>
          <Changes credential={read.data} tag={read.tag} onDeleted={onClose} onChanged={() => credential.refetch()} />
        </>
      )}
    </SidePanel>
  );
}

function Metadata({ credential }: { readonly credential: CredentialMetadata }) {
  const { type, description, created_at, updated_at, access_count, versions } = credential;
  return (
    <section className="panel-section" aria-label="Metadata">
      <Facts
        rows={[
          ['type', type],
          ['description', description === '' ? null : <bdi key="description">{description}</bdi>],
          ['created', <Time key="created" at={created_at} />],
          ['updated', <Time key="updated" at={updated_at} />],
          ['reads', access_count.toLocaleString('en')],
        ]}
      />
      <h3>Versions</h3>
      <ul>
        {versions.map(({ version, created_at: at }) => (
          <li key={version}>
            {`${version} · `}
            <Time at={at} />
          </li>
        ))}
      </ul>
    </section>
  );
}

interface ChangesProps {
  readonly credential: CredentialMetadata;
  readonly tag: string;
  readonly onDeleted: () => void;
  /** Called if the credential has changed since the panel read it. */
  readonly onChanged: () => Promise<unknown>;
}

function Changes({ credential: { path, versions }, tag, onDeleted, onChanged }: ChangesProps) {
  const isEditor = useRole('editor');
  const [dialog, setDialog] = useState<'rotate' | 'delete' | null>(null);
  const leases = useQuery({
    queryKey: ['credential', path, 'leases'],
    queryFn: ({ signal }) => client.leases.list({ path, status: 'active', limit: 1 }, { signal }),
    enabled: dialog === 'delete',
    staleTime: 0,
  });
  if (!isEditor) return <RoleHint needs="editor" />;
  const remove = async (): Promise<void> => {
    await refreshOnConflict(client.credentials.delete(path, { ifMatch: tag }), onChanged);
    announce(`The credential ${path} is deleted.`);
    onDeleted();
    await forgetDeleted(path);
  };
  const active = leases.data?.meta.total;
  const leaseText = active === undefined ? 'its active leases' : countText(active, 'active lease');
  return (
    <section className="panel-section" aria-label="Changes">
      <h3>Changes</h3>
      <div className="buttons">
        <button type="button" onClick={() => setDialog('rotate')}>
          Store a new version…
        </button>
        <button type="button" className="danger" onClick={() => setDialog('delete')}>
          Delete…
        </button>
      </div>
      {dialog === 'rotate' && (
        <StoreDialog path={path} onClose={() => setDialog(null)} onStored={() => setDialog(null)} />
      )}
      <ConfirmDialog
        isOpen={dialog === 'delete'}
        title="Delete the credential?"
        verb="Delete the credential"
        typed={path}
        onConfirm={remove}
        onClose={() => setDialog(null)}
      >
        <p>{`This destroys ${countText(versions.length, 'version')} and ends ${leaseText}.`}</p>
        <p>The audit log and the exposure record are kept. Deleted values cannot be recovered.</p>
      </ConfirmDialog>
    </section>
  );
}
