/** The request as it would be sent. INVARIANT: text from the agent is text, never markup. */
import type { Approval } from '../../../../src/client/types.ts';
import { escapeInvisible } from '../../../../src/core/operator-text.ts';
import { Facts } from '../../components/side-panel.tsx';
import { Copyable } from '../../components/texts.tsx';
import { indentJson } from './indent-json.ts';

type Request = NonNullable<Approval['request']>;

const MAX_LINES = 16;
const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\b/i;

/** The body, indented if it is complete JSON; otherwise exactly as it was sent. */
function toShownBody({ body, body_encoding, content_type, truncated }: Request): string {
  if (body_encoding !== 'utf8' || truncated || content_type === null || !JSON_TYPE.test(content_type)) return body;
  try {
    return indentJson(body);
  } catch {
    return body;
  }
}

/**
 * WHY marked: invisible characters, or characters that change the direction of text, could make the request look like
 * another one.
 */
const showCharacter = (character: string): string => `\\u{${character.codePointAt(0)?.toString(16)}}`;

/** Marks all such characters except line ends and tabs, which only a body shows unchanged. */
export const showInvisible = (text: string): string =>
  escapeInvisible(text, (character) =>
    character === '\n' || character === '\t' ? character : showCharacter(character),
  );

export function ExactRequest({ request }: { readonly request: Request }) {
  const { method, url, content_type, body_bytes, body_sha256, body_encoding, truncated, headers } = request;
  const shownBody = showInvisible(toShownBody(request));
  return (
    <div className="exact-request">
      <p>
        <code dir="ltr">
          {method} {showInvisible(url)}
        </code>
      </p>
      {request.opens_websocket && (
        <p className="notice danger">
          <strong>Opens a WebSocket: messages sent over it later are not shown</strong>
        </p>
      )}
      {headers.length > 0 && (
        <ul className="headers" aria-label="Headers of the request" dir="ltr">
          {[...headers.entries()].map(([place, { name, value }]) => (
            <li key={place}>
              <code>{escapeInvisible(`${name}: ${value}`, showCharacter)}</code>
            </li>
          ))}
        </ul>
      )}
      {body_bytes > 0 && (
        // A field, so that it can be reached and scrolled from the keyboard.
        <textarea
          readOnly
          aria-label="Body of the request"
          dir="ltr"
          spellCheck={false}
          rows={Math.min(MAX_LINES, shownBody.split('\n').length + 1)}
          value={shownBody}
        />
      )}
      {truncated && (
        <p className="notice warning">
          Only the first 16 KiB of {body_bytes.toLocaleString('en')} bytes are shown. The answer applies to all of them.
        </p>
      )}
      <Facts
        rows={[
          ['Content type', content_type === null ? null : showInvisible(content_type)],
          [
            'Body',
            body_bytes === 0
              ? 'none'
              : `${body_bytes.toLocaleString('en')} bytes${body_encoding === 'base64' ? ', shown as base64' : ''}`,
          ],
          ['SHA-256', <Copyable key="digest" text={body_sha256} what="the digest of the body" />],
        ]}
      />
    </div>
  );
}
