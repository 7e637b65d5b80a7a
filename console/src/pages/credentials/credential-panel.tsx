/** One credential: metadata and versions, its value on request, its targets, its exposure, and its access. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import type { CredentialMetadata } from '../../../../src/client/types.ts';
import { refreshOnConflict } from '../../components/edit-conflict.tsx';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { ConfirmDialog } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { Loading } from '../../components/loading.tsx';
import { Facts, SidePanel } from '../../components/side-panel.tsx';
import { Time } from '../../components/time.tsx';
import { client } from '../../session/console-client.ts';
import { useRole } from '../../session/use-session.ts';
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
  const isEditor = useRole('editor');
  const {
    data: read,
    error,
    isPending,
    refetch,
  } = useQuery({
    queryKey: ['credential', path],
    queryFn: ({ signal }) => client.credentials.readMetadataTagged(path, { signal }),
  });
  const newest = Math.max(0, ...(read?.data.versions.map(({ version }) => version) ?? []));
  return (
    <SidePanel title={path} onClose={onClose}>
      {isPending && <Loading what="the credential" />}
      {error !== null && <ErrorPanel error={error} onRetry={() => void refetch()} />}
      {read !== undefined && (
        <>
          <Metadata credential={read.data} />
          <Reveal path={path} isEditor={isEditor} />
          <TargetsSection path={path} isEditor={isEditor} />
          <ExposureSection path={path} newest={newest} />
          <Link href={`/access?view=matrix&prefix=${encodeURIComponent(path)}`}>Show access</Link>
          <Changes
            credential={read.data}
            tag={read.tag}
            isEditor={isEditor}
            onDeleted={onClose}
            onChanged={() => refetch()}
          />
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
  readonly isEditor: boolean;
  readonly onDeleted: () => void;
  /** Called if the credential has changed since the panel read it. */
  readonly onChanged: () => Promise<unknown>;
}

function Changes({ credential: { path, versions }, tag, isEditor, onDeleted, onChanged }: ChangesProps) {
  const [dialog, setDialog] = useState<'rotate' | 'delete' | null>(null);
  const leases = useQuery({
    queryKey: ['credential', path, 'leases'],
    queryFn: ({ signal }) => client.leases.list({ path, status: 'active', limit: 1 }, { signal }),
    enabled: dialog === 'delete',
    staleTime: 0,
  });
  if (!isEditor) return <p className="hint">Requires the editor role.</p>;
  const remove = async (): Promise<void> => {
    await refreshOnConflict(client.credentials.delete(path, { ifMatch: tag }), onChanged);
    announce(`The credential ${path} is deleted.`);
    onDeleted();
    await forgetDeleted(path);
  };
  const active = leases.data?.meta.total;
  const leaseText =
    active === undefined ? 'its active leases' : active === 1 ? '1 active lease' : `${active} active leases`;
  return (
    <section className="panel-section" aria-label="Changes">
      <h3>Changes</h3>
      <div className="buttons">
        <button type="button" onClick={() => setDialog('rotate')}>
          Store a new version…
        </button>
        <button type="button" className="danger" onClick={() => setDialog('delete')}>
          Delete …
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
        <p>
          {`This destroys ${versions.length === 1 ? '1 version' : `${versions.length} versions`} and ends ${leaseText}.`}
        </p>
        <p>The audit log and the exposure record are kept. Deleted values cannot be recovered.</p>
      </ConfirmDialog>
    </section>
  );
}
