/** One agent: its key, its leases and sessions, its exposure, and its deregistration. */
import { type Query, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { refreshOnConflict } from '../../components/edit-conflict.tsx';
import { ConfirmDialog, FormDialog } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { RoleButton, RoleHint } from '../../components/role-button.tsx';
import { Facts, SidePanel } from '../../components/side-panel.tsx';
import { QueryState } from '../../components/states.tsx';
import { Copyable, Time } from '../../components/texts.tsx';
import { countText, formatTime } from '../../components/words.ts';
import { client } from '../../session/console-client.ts';
import { Exposure, Leases, Sessions } from './holdings.tsx';
import { KeyFields, keyOf } from './key-fields.tsx';
import { useHeld } from './use-held.ts';

interface Props {
  readonly name: string;
  readonly onPanic: () => void;
  readonly onClose: () => void;
}

export function AgentPanel({ name, onPanic, onClose }: Props) {
  const agent = useQuery({
    queryKey: ['agents', 'one', name],
    queryFn: ({ signal }) => client.agents.readTagged(name, { signal }),
  });
  const { data: read } = agent;
  const [dialog, setDialog] = useState<'rotate' | 'deregister' | null>(null);
  const close = (): void => setDialog(null);
  return (
    <SidePanel title={name} onClose={onClose}>
      <QueryState query={agent} what="the agent" />
      {read !== undefined && (
        <>
          <Facts
            rows={[
              ['Description', read.data.description === '' ? null : read.data.description],
              ['Public key', <Copyable key="key" text={read.data.public_key} what="the public key" />],
              ['Registered', <Time key="at" at={read.data.registered_at} />],
            ]}
          />
          <div className="page-actions">
            <RoleButton needs="editor" onClick={() => setDialog('rotate')}>
              Replace the key
            </RoleButton>
            <RoleButton needs="editor" onClick={() => setDialog('deregister')}>
              Deregister
            </RoleButton>
            <RoleButton needs="editor" className="danger" onClick={onPanic}>
              Panic
            </RoleButton>
          </div>
          <p>
            <Link href={`/access?${new URLSearchParams({ view: 'simulator', for: name })}`}>Grant access</Link>: the
            simulator proposes a policy for an action and a path.
          </p>
          <RoleHint needs="editor" verb="Changing agents" />
          <Leases agent={name} />
          <Sessions agent={name} />
          <RotateDialog name={name} isOpen={dialog === 'rotate'} onClose={close} />
          <DeregisterDialog
            name={name}
            tag={read.tag}
            isOpen={dialog === 'deregister'}
            onDone={onClose}
            onChanged={() => agent.refetch()}
            onClose={close}
          />
        </>
      )}
      {/* The record remains after the agent is deregistered. */}
      <Exposure agent={name} />
    </SidePanel>
  );
}

interface DialogProps {
  readonly name: string;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

function RotateDialog({ name, isOpen, onClose }: DialogProps) {
  const queries = useQueryClient();
  const rotate = async (values: FormData): Promise<void> => {
    const grace_seconds = Number(values.get('grace'));
    const { former_key_until: until } = await client.agents.rotate(name, { ...keyOf(values), grace_seconds });
    announce(
      until === null
        ? 'The key is replaced.'
        : `The key is replaced. The previous one is valid until ${formatTime(new Date(until), 'local', false)}.`,
    );
    await queries.invalidateQueries({ queryKey: ['agents'] });
  };
  return (
    <FormDialog
      isOpen={isOpen}
      title={`Replace the key of “${name}”`}
      verb="Replace"
      onSubmit={rotate}
      onClose={onClose}
    >
      <KeyFields agent={name} />
      <label className="field">
        <span>The previous key stays valid for</span>
        <select name="grace" defaultValue="300">
          <option value="0">0 seconds: it was stolen</option>
          <option value="300">5 minutes</option>
          <option value="3600">1 hour</option>
          <option value="86400">1 day</option>
          <option value="604800">1 week</option>
        </select>
      </label>
      <p className="hint">Sessions and leases stay. To end them too, use Panic afterwards.</p>
    </FormDialog>
  );
}

interface DeregisterProps extends DialogProps {
  readonly tag: string;
  readonly onDone: () => void;
  /** Called if the agent has changed since the panel read it. */
  readonly onChanged: () => Promise<unknown>;
}

function DeregisterDialog({ name, tag, isOpen, onDone, onChanged, onClose }: DeregisterProps) {
  const queries = useQueryClient();
  const deregister = async (): Promise<void> => {
    await refreshOnConflict(client.agents.deregister(name, { ifMatch: tag }), onChanged);
    announce(`The agent ${name} is deregistered.`);
    onDone();
    // Excludes the agent itself, which the panel would read once more and not find.
    const isAgent = ({ queryKey: [kind, part, of] }: Query): boolean =>
      kind === 'agents' && part === 'one' && of === name;
    await queries.invalidateQueries({ predicate: (query) => !isAgent(query) });
    queries.removeQueries({ predicate: isAgent });
  };
  return (
    <ConfirmDialog
      isOpen={isOpen}
      title={`Deregister “${name}”?`}
      verb="Deregister"
      typed={name}
      onConfirm={deregister}
      onClose={onClose}
    >
      {isOpen && <WhatEnds name={name} />}
    </ConfirmDialog>
  );
}

function WhatEnds({ name }: { readonly name: string }) {
  const { leases, sessions } = useHeld(name);
  return (
    <>
      <ul className="ends">
        <li>
          <strong>{countText(leases, 'active lease')}</strong> and <strong>{countText(sessions, 'session')}</strong>{' '}
          end.
        </li>
        <li>It can no longer log in.</li>
        <li>If the server stores its private key, that key is deleted.</li>
      </ul>
      <p>
        Policies that name it are kept, and apply to any agent that is registered under this name later. The audit log
        and its exposure record are also kept.
      </p>
    </>
  );
}
