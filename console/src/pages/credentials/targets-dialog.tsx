/** Sets the targets of a credential: a service of the catalogue, or custom origins. */
import { useState } from 'react';
import type { Tagged } from '../../../../src/client/leasehold.ts';
import type { CredentialTargets } from '../../../../src/client/types.ts';
import { PLACEMENT_KINDS } from '../../../../src/vault/use/target.ts';
import { useEdit } from '../../components/edit-conflict.tsx';
import { ControlledTextField } from '../../components/fields.tsx';
import { FormDialog } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { client } from '../../session/console-client.ts';
import { forgetCredentials, targetsSubject, useCatalogue } from './credential-queries.ts';
import { checkTargets, NEW_TARGETS, newTarget, type TargetsText, type TargetText, toText } from './targets-form.ts';

const PATHS_LABEL = 'Paths, one on each line, such as /v1/*';

interface Props {
  readonly path: string;
  /** Null if the credential has no targets. */
  readonly targets: Tagged<CredentialTargets> | null;
  readonly onClose: () => void;
}

const textOf = (targets: CredentialTargets | undefined): TargetsText =>
  targets === undefined ? NEW_TARGETS : toText(targets, targets.service ?? '');

export function TargetsDialog({ path, targets, onClose }: Props) {
  const [text, setText] = useState(() => textOf(targets?.data));
  const { base, isBlocked, catchConflict, notice } = useEdit(targets, {
    subject: targetsSubject(path),
    keeps: 'always',
    onReload: (current) => {
      void forgetCredentials();
      if (current === null) onClose();
      else setText(textOf(current.data));
    },
  });
  const services = useCatalogue();
  const { body, problem } = checkTargets(text);
  const set = (changes: Partial<TargetsText>): void => setText({ ...text, ...changes });
  const choose = (name: string): void => {
    const service = services.find((each) => each.name === name);
    setText(service === undefined ? { ...text, service: '' } : toText(service, name));
  };
  const service = services.find(({ name }) => name === text.service);
  const save = async (): Promise<void> => {
    if (body === null) return;
    await client.targets.put(path, body, base === null ? { onlyIfNew: true } : { ifMatch: base.tag });
    announce(`The targets of ${path} are saved.`);
    await forgetCredentials();
  };
  return (
    <FormDialog
      isOpen
      title={`Targets of ${path}`}
      className="wide"
      verb="Save the targets"
      isHeld={body === null || isBlocked}
      onSubmit={save}
      onFailure={catchConflict}
      onClose={onClose}
    >
      <div className="form">
        <label className="field wide-field">
          <span>Service</span>
          <select value={text.service} onChange={({ target }) => choose(target.value)}>
            <option value="">Custom origins</option>
            {services.map(({ name, title, unsupported }) => (
              <option key={name} value={name} disabled={unsupported !== null}>
                {title}
              </option>
            ))}
          </select>
        </label>
        {service?.needs_host === true && (
          <p className="hint wide-field">Replace * in the origin with the host of your account.</p>
        )}
        {text.targets.map((target, index) => (
          <TargetFieldset
            key={target.id}
            target={target}
            number={index + 1}
            onChange={(changes) =>
              set({ targets: text.targets.map((each) => (each.id === target.id ? { ...each, ...changes } : each)) })
            }
            onRemove={
              text.targets.length === 1
                ? null
                : () => set({ targets: text.targets.filter(({ id }) => id !== target.id) })
            }
          />
        ))}
        <div className="buttons wide-field">
          <button
            type="button"
            onClick={() =>
              set({ targets: [...text.targets, newTarget(1 + Math.max(...text.targets.map(({ id }) => id)))] })
            }
          >
            Add an origin
          </button>
        </div>
        <Placement text={text} set={set} />
      </div>
      {problem !== null && (
        <p className="field-problem" role="status">
          {problem}
        </p>
      )}
      <p className="confirm-text">Saving ends the use leases of this credential; agents take new ones.</p>
      {notice}
    </FormDialog>
  );
}

interface TargetFieldsetProps {
  readonly target: TargetText;
  readonly number: number;
  readonly onChange: (changes: Partial<TargetText>) => void;
  /** Null for the only target. */
  readonly onRemove: (() => void) | null;
}

function TargetFieldset({ target, number, onChange, onRemove }: TargetFieldsetProps) {
  const text = (name: 'origin' | 'methods' | 'networks', label: string) => (
    <ControlledTextField label={label} value={target[name]} onChange={(value) => onChange({ [name]: value })} />
  );
  return (
    <fieldset className="card wide-field">
      <legend>{`Target ${number}`}</legend>
      {text('origin', 'Origin')}
      <label className="field">
        <span>{PATHS_LABEL}</span>
        <textarea
          value={target.paths}
          spellCheck={false}
          onChange={(event) => onChange({ paths: event.target.value })}
        />
      </label>
      {text('methods', 'Methods')}
      {text('networks', 'Internal networks (allow_networks) that it may reach, such as 10.0.0.0/8')}
      {onRemove !== null && (
        <div className="buttons">
          <button type="button" className="small" onClick={onRemove}>
            {`Remove target ${number}`}
          </button>
        </div>
      )}
    </fieldset>
  );
}

interface PlacementProps {
  readonly text: TargetsText;
  readonly set: (changes: Partial<TargetsText>) => void;
}

function Placement({ text, set }: PlacementProps) {
  const { kind } = text;
  const field = (name: 'name' | 'template' | 'username', label: string) => (
    <ControlledTextField label={label} value={text[name]} onChange={(value) => set({ [name]: value })} />
  );
  return (
    <>
      <label className="field">
        <span>Placement of the value</span>
        <select
          value={kind}
          onChange={({ target }) => set({ kind: PLACEMENT_KINDS.find((each) => each === target.value) ?? 'bearer' })}
        >
          {PLACEMENT_KINDS.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      {(kind === 'header' || kind === 'query') && field('name', 'Name')}
      {kind === 'header' && field('template', 'Template, with {value} once (optional)')}
      {kind === 'basic' && field('username', 'User name (empty: the value is user:password)')}
    </>
  );
}
