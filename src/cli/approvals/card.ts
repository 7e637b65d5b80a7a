/**
 * A request for approval, shown to the operator before the answer. The agent wrote URL, body and purpose, so no
 * character of them may move the cursor or reverse the text. SOURCE: docs/approvals.md.
 */
import { isReadable } from '../../client/approvals.ts';
import type { Approval } from '../../client/types.ts';
import { escapeControls, pluralize } from '../output/cells.ts';

export interface CardOptions {
  readonly columns: number;
  /** The server's clock, in ms since 1970. */
  readonly now: number;
}

const LABEL_WIDTH = 11;
/**
 * Exceeds the indent of the first line of every field, so that an agent's wrapped text cannot look like another line of
 * the card.
 */
const CONTINUATION = ' '.repeat(8);
const BODY_MARGIN = '  | ';
const WEBSOCKET = 'Opens a WebSocket: messages sent over it later are not shown';

export function approvalCard(group: readonly [Approval, ...Approval[]], options: CardOptions): string {
  const [first] = group;
  const { agent_name: name, action, path, covers, policy_names, quorum, approvals, expires_at } = first;
  const agent = name.includes(':') ? name : `agent:${name}`;
  const row = (label: string, text: string): string[] => wrapWords(label.padEnd(LABEL_WIDTH), text, options.columns);
  const given = approvals.map(({ operator }) => operator).join(', ');
  const distinct = [...Map.groupBy(group, requestKey).values()];
  const count = group.length === 1 ? '' : `${pluralize(group.length, 'request')}, one answer: `;
  return [
    '─'.repeat(Math.min(options.columns, 80)),
    ...wrap(`${count}${agent} asks to ${action} ${path}`, options.columns),
    '',
    ...distinct.flatMap((same) => requestLines(same, options.columns)),
    ...row('Policies', policy_names.join(', ')),
    ...row('Covers', covers),
    ...(quorum === 1 && given === ''
      ? []
      : row('Approved', `${approvals.length} of ${quorum}${given && ` (${given})`}`)),
    ...row('Answer', statusOf(first, Date.parse(expires_at) - options.now)),
    ...row('Id', group.map(({ approval_id }) => `approval:${approval_id}`).join(' ')),
    '',
  ].join('\n');
}

const KEY_NAMES = { a: 'approve', d: 'deny', s: 'skip', q: 'quit' } as const;

/** The keys that answer the requests. A request that cannot be shown cannot be approved with a key. */
export function promptFor(group: readonly Approval[], others: readonly (keyof typeof KEY_NAMES)[]) {
  const allowed = group.every(isReadable) ? (['a', ...others] as const) : others;
  return { allowed, prompt: `${allowed.map((key) => `[${key}] ${KEY_NAMES[key]}`).join('  ')} ` };
}

function requestKey({ purpose, request }: Approval): string {
  return JSON.stringify([purpose, request]);
}

function requestLines(same: readonly Approval[], columns: number): string[] {
  const [first] = same;
  if (first === undefined) return [];
  const { request, purpose, action } = first;
  const times = same.length === 1 ? '' : ` (${same.length} times)`;
  const why = purpose === null ? [] : wrap(`  Purpose: ${JSON.stringify(purpose)}`, columns, CONTINUATION);
  if (request === null) {
    const what = action === 'retrieve' ? 'The value itself' : 'The request can no longer be read';
    return [...wrap(`  ${what}${times}`, columns), ...why, ''];
  }
  const { method, url, headers, opens_websocket: isWebSocket } = request;
  const names = headers.flatMap(({ name, value }) => wrap(`    ${name}: ${value}`, columns, CONTINUATION));
  return [
    ...wrap(`  ${method} ${url}${times}`, columns, CONTINUATION),
    ...(isWebSocket ? wrap(`  !!! ${WEBSOCKET}`, columns, '  !!! ') : []),
    ...(names.length === 0 ? [] : ['  Headers:', ...names]),
    ...bodyLines(request, columns),
    ...why,
    '',
  ];
}

function bodyLines(request: NonNullable<Approval['request']>, columns: number): string[] {
  const { content_type: type, body, body_encoding, body_bytes, body_sha256, truncated } = request;
  if (body_bytes === 0) return [];
  const size = `  Body: ${type ?? 'no content type'}, ${pluralize(body_bytes, 'byte')}, SHA-256:`;
  const part = truncated ? ['  Only the beginning of the body is shown:'] : [];
  const encoding = body_encoding === 'base64' ? ['  The body is not text; as base64:'] : [];
  const lines = body.split('\n').flatMap((line) => wrap(BODY_MARGIN + line, columns, BODY_MARGIN));
  return [...wrap(size, columns, CONTINUATION), ...wrap(`  ${body_sha256}`, columns), ...part, ...encoding, ...lines];
}

function statusOf({ status, answered_by, reason }: Approval, leftMs: number): string {
  if (status === 'pending') return `within ${describeSeconds(Math.max(0, Math.ceil(leftMs / 1000)))}`;
  const by = answered_by === null ? '' : ` by ${answered_by}`;
  return `${status.replace('_', ' ')}${by}${reason === null ? '' : `: ${JSON.stringify(reason)}`}`;
}

function describeSeconds(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  return minutes === 0 ? `${seconds} s` : `${minutes} min ${seconds % 60} s`;
}

/** WHY 2 for all but printable ASCII: terminals do not agree on which characters are wide. */
function widthOf(character: string): number {
  return /^[\x20-\x7e]$/.test(character) ? 1 : 2;
}

const columnsOf = (text: string): number => Array.from(text).reduce((sum, character) => sum + widthOf(character), 0);

/**
 * Escapes the text and breaks it into lines of the width, indented from the second on. Omits nothing. WHY not left to
 * the terminal: its lines have no indent, so an agent's text could look like another line of the card.
 */
function wrap(text: string, columns: number, indent = ''): string[] {
  const width = Math.max(20, columns);
  const lines: string[] = [];
  let [line, used] = ['', 0];
  for (const character of escapeControls(text)) {
    const wide = widthOf(character);
    if (used + wide > width) {
      lines.push(line);
      [line, used] = [indent, indent.length];
    }
    line += character;
    used += wide;
  }
  return [...lines, line];
}

function wrapWords(label: string, text: string, columns: number): string[] {
  const indent = ' '.repeat(label.length);
  const lines: string[] = [];
  let line = '';
  for (const word of escapeControls(text).split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (label.length + columnsOf(longer) <= columns) line = longer;
    else {
      lines.push(line);
      line = word;
    }
  }
  const texts = [...lines, line].filter((each) => each !== '');
  return texts.flatMap((each, at) => wrap((at === 0 ? label : indent) + each, columns, indent));
}
