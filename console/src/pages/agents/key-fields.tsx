/** The choice of an agent's key: its own, or one that the server makes. */
import { useState } from 'react';
import { FormTextField, textOf } from '../../components/fields.tsx';

/** The request's `public_key`; without it the server makes a key pair. */
export function keyOf(values: FormData): { readonly public_key?: string } {
  return values.get('key') === 'own' ? { public_key: textOf(values, 'public_key') } : {};
}

export function KeyFields({ agent }: { readonly agent: string | null }) {
  const [isOwn, setOwn] = useState(true);
  return (
    <fieldset>
      <legend>Key</legend>
      <label className="choice">
        <input type="radio" name="key" value="own" checked={isOwn} onChange={() => setOwn(true)} />
        <span>The agent’s own key. The server never receives the private half.</span>
      </label>
      <label className="choice">
        <input type="radio" name="key" value="server" checked={!isOwn} onChange={() => setOwn(false)} />
        <span>
          A key pair made by the server. The private half stays on its machine, in its data directory, as{' '}
          <code>agents/{agent ?? 'NAME'}/private_key.pem</code>; it is never sent.
        </span>
      </label>
      {isOwn && (
        <>
          <FormTextField label="Public key, base64 of its 32 bytes" name="public_key" isRequired maxLength={44} />
          <p className="hint">
            Of a key in a file: <code>openssl pkey -in KEY.pem -pubout -outform DER | tail -c 32 | base64</code>
          </p>
        </>
      )}
    </fieldset>
  );
}
