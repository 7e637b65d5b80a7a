/**
 * Stores a value from a field or a file: a new credential, or a new version of an existing one. INVARIANT: the value is
 * read from the field or the file when it is sent. It is masked unless the operator shows it, and is in no state.
 */
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { LeaseholdError } from '../../../../src/client/errors.ts';
import { parsePath } from '../../../../src/core/path.ts';
import { ruleBroken } from '../../../../src/engine/errors.ts';
import { ControlledTextField } from '../../components/fields.tsx';
import { FormDialog } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { SecretField, type SecretInput } from '../../components/secret-field.tsx';
import { client } from '../../session/console-client.ts';
import { forgetCredentials, useServices } from './credential-queries.ts';

interface Props {
  /** The credential that receives a new version; null if the path is typed. */
  readonly path: string | null;
  readonly onStored: (path: string) => void;
  readonly onClose: () => void;
}

/** The newest version at the path; null if there is no credential. */
async function readNewest(path: string, signal: AbortSignal): Promise<number | null> {
  // Uses a list call: a 404 would be logged as an error in the browser console.
  const { paths } = await client.overview.matrix({ prefix: path, path_limit: 1, agent_limit: 1 }, { signal });
  if (paths[0] !== path) return null;
  const { versions } = await client.credentials.readMetadata(path, { signal });
  return Math.max(...versions.map(({ version }) => version));
}

/** @throws LeaseholdError INVALID_REQUEST for a file that is not text */
async function readFile(file: File): Promise<string> {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await file.arrayBuffer());
  } catch {
    throw new LeaseholdError('INVALID_REQUEST', 'The file is not text in UTF-8. Encode it first, such as in Base64.');
  }
}

export function StoreDialog({ path: fixed, onStored, onClose }: Props) {
  const value = useRef<SecretInput>(null);
  const file = useRef<HTMLInputElement>(null);
  const [path, setPath] = useState(fixed ?? '');
  const [type, setType] = useState('');
  const [description, setDescription] = useState('');
  const [source, setSource] = useState<'typed' | 'file'>('typed');
  const [service, setService] = useState('');
  const [isStored, setStored] = useState(false);
  const problem = path === '' ? null : ruleBroken(() => parsePath(path));
  const isPath = path !== '' && problem === null;
  const { data: newest } = useQuery({
    queryKey: ['credential', path, 'newest'],
    queryFn: ({ signal }) => readNewest(path, signal),
    enabled: isPath,
    placeholderData: keepPreviousData,
  });
  const services = useServices();
  const exists = isPath && newest !== null && newest !== undefined;
  const store = async (): Promise<void> => {
    try {
      const chosen = file.current?.files?.[0];
      const fields = { path, ...(type === '' ? {} : { type }), ...(description === '' ? {} : { description }) };
      const { version } = await client.credentials.store(
        { ...fields, value: chosen === undefined ? (value.current?.read() ?? '') : await readFile(chosen) },
        { onlyIfNew: !exists },
      );
      announce(`Stored version ${version} of ${path}.`);
      if (service !== '' && !exists) {
        // Another attempt would store the value again.
        setStored(true);
        await client.targets.put(path, { service }, { onlyIfNew: true });
      }
      await forgetCredentials();
      onStored(path);
    } finally {
      value.current?.clear();
    }
  };
  return (
    <FormDialog
      isOpen
      title={fixed === null ? 'Store a credential' : `New version of ${fixed}`}
      className="wide"
      verb={exists ? 'Store the new version' : 'Store the credential'}
      cancel={isStored ? 'Open its details' : 'Cancel'}
      isHeld={!isPath || isStored || newest === undefined}
      onSubmit={store}
      onClose={isStored ? () => onStored(path) : onClose}
    >
      <div className="form">
        <div className="wide-field">
          <ControlledTextField
            label="Path"
            value={path}
            problem={problem ?? undefined}
            disabled={fixed !== null}
            required
            placeholder="prod/db/password"
            onChange={setPath}
          />
        </div>
        <ControlledTextField
          label={exists ? 'Type (empty: unchanged)' : 'Type (optional)'}
          value={type}
          placeholder="api_key"
          onChange={setType}
        />
        <ControlledTextField
          label={exists ? 'Description (empty: unchanged)' : 'Description (optional)'}
          value={description}
          spellCheck
          onChange={setDescription}
        />
        {!exists && (
          <label className="field wide-field">
            <span>Service (optional)</span>
            <select value={service} onChange={({ target }) => setService(target.value)}>
              <option value="">Other API (set targets after storing)</option>
              {services.map(({ name, title }) => (
                <option key={name} value={name}>
                  {title}
                </option>
              ))}
            </select>
          </label>
        )}
        <fieldset className="choices wide-field">
          <legend>The value is</legend>
          <label className="toggle">
            <input type="radio" name="source" checked={source === 'typed'} onChange={() => setSource('typed')} /> typed
            or pasted
          </label>
          <label className="toggle">
            <input type="radio" name="source" checked={source === 'file'} onChange={() => setSource('file')} /> the
            content of a file
          </label>
        </fieldset>
        <div className="wide-field">
          {source === 'typed' ? (
            <SecretField ref={value} label="Value" />
          ) : (
            <label className="field">
              <span>File (stored byte for byte, including the last line break)</span>
              <input ref={file} type="file" required />
            </label>
          )}
        </div>
      </div>
      <p className="confirm-text" role="status">
        {isStored
          ? 'The value was stored, but its targets were not. Set them in its details.'
          : exists
            ? `This path has a credential: the value becomes version ${newest + 1}, which agents receive with their next lease. Active leases stay.`
            : isPath && newest === null
              ? 'A new credential will be created at this path.'
              : ''}
      </p>
    </FormDialog>
  );
}
