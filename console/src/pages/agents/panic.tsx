/**
 * Ends all access of one agent, or of all agents. Shows the affected leases and sessions, asks for a typed word, and
 * then lists the credentials to rotate.
 */
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { useLocation } from 'wouter';
import type { Panicked } from '../../../../src/client/types.ts';
import { DataTable, type TableColumn } from '../../components/data-table.tsx';
import { ConfirmDialog } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { toRows } from '../../components/paged-rows.ts';
import { Badge, CredentialLink, credentialHref } from '../../components/texts.tsx';
import { countText } from '../../components/words.ts';
import { client } from '../../session/console-client.ts';
import { useExposed, useHeld } from './use-held.ts';

export type PanicScope = { readonly agent: string } | 'everything';

interface DialogProps {
  readonly scope: PanicScope | null;
  readonly onDone: (result: Panicked) => void;
  readonly onClose: () => void;
}

export function PanicDialog({ scope, onDone, onClose }: DialogProps) {
  const queries = useQueryClient();
  const agent = scope === null || scope === 'everything' ? undefined : scope.agent;
  const panic = async (): Promise<void> => {
    const result = await client.exposure.panic(agent === undefined ? {} : { agent });
    const ended = `${countText(result.leases, 'lease')} and ${countText(result.sessions, 'session')}`;
    announce(`Ended ${ended}. ${result.rotate.length} to rotate.`);
    onDone(result);
    await queries.invalidateQueries();
  };
  return (
    <ConfirmDialog
      isOpen={scope !== null}
      title={agent === undefined ? 'End everything that agents hold?' : `End everything that “${agent}” holds?`}
      verb="Panic"
      typed={agent ?? 'everything'}
      onConfirm={panic}
      onClose={onClose}
    >
      {scope !== null && <WhatEnds agent={agent} />}
    </ConfirmDialog>
  );
}

function WhatEnds({ agent }: { readonly agent: string | undefined }) {
  const { leases, sessions, streams } = useHeld(agent);
  const exposed = useExposed(agent);
  return (
    <>
      <p>This ends {agent === undefined ? 'now, of all agents' : 'now'}:</p>
      <ul className="ends">
        <li>
          <strong>{countText(leases, 'active lease')}</strong>
          {agent === undefined ? ', including those of operators' : ''}
        </li>
        <li>
          <strong>{countText(sessions, 'session')}</strong>
        </li>
        <li>
          <strong>{countText(streams, 'request in flight', 'requests in flight')}</strong> on the node that responds,
          and those on other nodes
        </li>
        <li>pending approvals, and approvals that were given</li>
      </ul>
      {agent !== undefined && (
        <p>
          It has seen or used <strong>{countText(exposed, 'credential')}</strong>. The result lists those to rotate.
        </p>
      )}
      <p>
        Registrations and policies are kept, so {agent === undefined ? 'agents' : 'the agent'} can log in again.
        {agent === undefined
          ? ' Operators stay signed in.'
          : ' If its key was stolen, deregister it or replace the key first.'}{' '}
        This cannot be undone.
      </p>
    </>
  );
}

type Exposed = Panicked['rotate'][number];

const COLUMNS: readonly TableColumn<Exposed>[] = [
  {
    title: 'Credential',
    width: 'minmax(12rem, 3fr)',
    cell: ({ path }) => <CredentialLink path={path} />,
  },
  { title: 'Version', width: '6rem', cell: ({ version }) => version },
  {
    title: 'State',
    width: '13rem',
    cell: ({ current }) =>
      current ? <Badge text="current: rotate it" tone="danger" /> : <Badge text="replaced or deleted" />,
  },
];
const keyOf = ({ path, version }: Exposed): string => `${path}:${version}`;

interface ResultProps {
  readonly scope: PanicScope;
  readonly result: Panicked;
  readonly onClose: () => void;
}

export function PanicResult({ scope, result, onClose }: ResultProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  const [, navigate] = useLocation();
  useEffect(() => heading.current?.focus(), []);
  const { leases, sessions, streams, rotate, used_only } = result;
  const current = rotate.filter((version) => version.current);
  // Versions that are still valid come first.
  const ordered = [...current, ...rotate.filter((version) => !version.current)];
  return (
    <section className="panic-result" aria-label="Result of the panic">
      <h2 ref={heading} tabIndex={-1}>
        Everything that {scope === 'everything' ? 'agents held' : `“${scope.agent}” held`} has ended
      </h2>
      <p>
        {countText(leases, 'lease')} revoked, {countText(sessions, 'session')} ended, {countText(streams, 'request')}{' '}
        aborted.{' '}
        {rotate.length === 0
          ? 'No value was seen, so no rotation is needed.'
          : `${countText(current.length, 'current value was', 'current values were')} seen: rotate each at its service, then store the new value.`}{' '}
        {used_only.length > 0 &&
          `${countText(used_only.length, 'version was', 'versions were')} only used, never seen, and need not be rotated.`}
      </p>
      {rotate.length > 0 && (
        <div className="split short">
          <DataTable
            label="Values to rotate"
            columns={COLUMNS}
            rows={toRows(ordered)}
            keyOf={keyOf}
            onOpen={({ path }) => navigate(credentialHref(path))}
            empty={null}
          />
        </div>
      )}
      <button type="button" onClick={onClose}>
        Close the result
      </button>
    </section>
  );
}
