/** `leasehold use`: makes one request with a credential that the caller does not see, and prints the response. */
import { LeaseholdError } from '../../client/errors.ts';
import type { UseRequest, UseResponse } from '../../client/types.ts';
import { decodeBody, encodeBody } from '../../client/use.ts';
import { parsePath } from '../../core/path.ts';
import { API_ERROR_CODES } from '../../engine/errors.ts';
import { list, text, toggle, withoutNulls } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { quoteWord } from '../../platform/installation.ts';
import { http } from '../../platform/node-http.ts';
import { parseUseRequest } from '../../vault/use/base-url.ts';
import { parseMethod } from '../../vault/use/target.ts';
import { ErrorWithHint, withDenialHint } from '../call-hints.ts';
import { type Command, defineCommand, type Invocation, TTL } from '../command.ts';
import { EXIT } from '../errors.ts';
import { readInput } from '../input.ts';
import { escapeText, pluralize } from '../output/cells.ts';
import { reportError } from '../report-error.ts';
import { printNotice, type Terminal } from '../terminal.ts';

const use = defineCommand({
  name: 'use',
  about: [
    'Leasehold makes the request, puts the value where the placement of the credential names, and redacts it in the response. Prints the body of the response, byte for byte.',
    'A URL that is only a path, such as /v1/models, is sent to the first target of the credential that it matches.',
    'A --data that is a JSON object or array is sent as application/json unless --header names another content type. Headers with an authority of yours are not sent, and redirects are not followed.',
    'The exit code is 0 for a status of 2xx and 4 for any other; 3 if Leasehold rejected the request or could not reach the upstream; 2 if the response was longer than 2 MiB and was truncated.',
  ],
  arguments: [
    { name: 'PATH', help: 'path of the credential', count: 'one' },
    { name: 'METHOD', help: 'such as GET or POST', count: 'one' },
    { name: 'URL', help: 'such as https://api.openai.com/v1/models, or only /v1/models', count: 'one' },
  ],
  flags: {
    header: list('NAME: VALUE', 'send this header', { short: 'H' }),
    data: { ...text('TEXT', 'send this body; @FILE for a file, - for standard input'), short: 'd' },
    include: toggle('print the status and the headers of the response too', { short: 'i' }),
    ttl: TTL,
    purpose: text('TEXT', 'why, for the audit log'),
  },
  examples: {
    'leasehold --agent ci use openai/key GET /v1/models': 'list the models of OpenAI',
    'leasehold --agent ci use slack/bot POST https://slack.com/api/chat.postMessage -d @message.json':
      'send a file as the body',
  },
  printsNoRecords: true,
  async run(invocation, flags, pathText, methodText, urlText) {
    const path = parsePath(pathText, 'PATH');
    const method = parseMethod(methodText.toUpperCase(), 'METHOD');
    const headers = toHeaders(flags.header);
    parseUseRequest(method, urlText, 'URL');
    const body = await readBody(invocation, flags.data, headers);
    const { ttl, purpose } = flags;
    const request = { path, method, url: urlText, headers: Object.fromEntries(headers), ...body };
    try {
      const reply = await send(invocation, { ...request, ...withoutNulls({ ttl, purpose }) });
      return printUpstreamResponse(invocation.terminal, reply, flags.include);
    } catch (error) {
      if (!isRejection(error)) throw error;
      reportError({ terminal: invocation.terminal, noun: 'use' }, error, invocation.settings);
      return EXIT.NEGATIVE;
    }
  },
});

const HEADER = /^([A-Za-z0-9!#$%&'*+.^_`|~-]+):[ \t]*([^\r\n\0]*)$/;

/** The headers by lower-case name. @throws UsageError */
function toHeaders(given: readonly string[]): Map<string, string> {
  const headers = new Map<string, string>();
  for (const line of given) {
    const [, name, value] = HEADER.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new UsageError("--header: must be 'NAME: VALUE'");
    const before = headers.get(name.toLowerCase());
    headers.set(name.toLowerCase(), before === undefined ? value : `${before}, ${value}`);
  }
  return headers;
}

const MAX_DATA_MIB = 2;

/** Reads the body. Sets the content type of a JSON body unless one is given, as users of curl do. @throws UsageError */
async function readBody(
  invocation: Invocation,
  data: string | null,
  headers: Map<string, string>,
): Promise<Pick<UseRequest, 'body' | 'body_encoding'>> {
  if (data === null) return {};
  const isInput = data === '-' || data.startsWith('@');
  const from = data === '-' ? data : data.slice(1);
  const bytes = isInput ? await readInput(invocation, from, MAX_DATA_MIB, '--data') : Buffer.from(data);
  if (!headers.has('content-type') && isJson(bytes.toString())) headers.set('content-type', 'application/json');
  return encodeBody(bytes);
}

function isJson(given: string): boolean {
  try {
    return /^\s*[{[]/.test(given) && typeof JSON.parse(given) === 'object';
  } catch {
    return false;
  }
}

/** @throws ErrorWithHint, LeaseholdError */
async function send(invocation: Invocation, request: UseRequest): Promise<UseResponse> {
  const { path, method, url } = request;
  const attempt = { action: 'use', path, request: { method, url } };
  const using = invocation.connect().use(request, { signal: invocation.signal });
  try {
    return await withDenialHint(invocation, attempt, using);
  } catch (error) {
    const hint = error instanceof LeaseholdError ? hintFor(error, quoteWord(path)) : null;
    throw error instanceof LeaseholdError && hint !== null ? new ErrorWithHint(error, hint) : error;
  }
}

const FAILURE_HINTS: readonly (readonly [failure: string, hint: string])[] = [
  ['value', 'Nothing was sent: the value must be 4 bytes to 4 KiB, and visible ASCII where it is placed in a header.'],
  ['dns', 'The host has no address. Check its name.'],
  ['refused_address', 'Its address is internal; see --allow-network of leasehold target put.'],
  ['connect', 'Nothing accepts connections at its address and port.'],
  ['tls', 'Its certificate is not trusted; see --target-ca-file of leasehold target put.'],
  ['timeout', 'It took too long to respond.'],
  ['protocol', 'It did not respond in HTTP.'],
  ['coding', 'Its response has a coding in which the value cannot be redacted.'],
  ['partial', 'It answered with a part that was not asked for, in which a part of the value could not be redacted.'],
  ['broker', 'Try again: the part of the server that makes requests was restarted.'],
];

/** The hint for the error. Null keeps the error's own hint, or the usual one of its code. */
function hintFor(error: LeaseholdError, path: string): string | null {
  const { code, message } = error;
  if (code === 'UPSTREAM_FAILED') {
    return FAILURE_HINTS.find(([failure]) => message.includes(`: ${failure}.`))?.[1] ?? null;
  }
  if (code !== 'ACCESS_DENIED') return null;
  if (message.includes('has no targets')) return `To set them: leasehold target put ${path} --service NAME`;
  const isExplained = error instanceof ErrorWithHint;
  return !isExplained && message.includes('no target of')
    ? `To see where it may be used: leasehold target show ${path}`
    : null;
}

function isRejection(error: unknown): boolean {
  return error instanceof LeaseholdError && (API_ERROR_CODES as readonly string[]).includes(error.code);
}

function printUpstreamResponse(terminal: Terminal, reply: UseResponse, hasHead: boolean): number {
  const { stdout } = terminal;
  const { status, redactions, truncated: isTruncated } = reply;
  const isOnTerminal = stdout.isTTY === true;
  const head = hasHead ? headLines(reply) : '';
  const body = decodeBody(reply);
  if (!isOnTerminal) stdout.write(Buffer.concat([Buffer.from(head), body]));
  else {
    stdout.write(escapeText(head));
    if (reply.body_encoding === 'utf8') stdout.write(escapeText(withNewline(reply.body)));
    else printNotice(terminal, `The body is ${pluralize(body.length, 'byte')}, and not text. To see it, redirect it.`);
  }
  if (redactions > 0)
    printNotice(terminal, `The value was redacted in the response, in ${pluralize(redactions, 'place')}.`);
  if (isTruncated) printNotice(terminal, 'WARNING  the response was truncated at 2 MiB, the limit of one call.');
  const isSuccess = status >= 200 && status < 300;
  if (!isSuccess)
    printNotice(terminal, `The upstream responded with ${statusWords(status)}.${redirectHint(reply, hasHead)}`);
  if (!isSuccess) return EXIT.UPSTREAM;
  return isTruncated ? EXIT.ERROR : EXIT.OK;
}

function redirectHint({ status, headers }: UseResponse, hasHead: boolean): string {
  if (status < 300 || status >= 400 || headers['location'] === undefined) return '';
  return ` Redirects are not followed${hasHead ? '' : '; -i shows the location'}.`;
}

function statusWords(status: number): string {
  return `${status} ${http.STATUS_CODES[status] ?? ''}`.trim();
}

function headLines({ status, headers }: UseResponse): string {
  const lines = Object.entries(headers).flatMap(([name, values]) =>
    [values].flat().map((value) => `${name}: ${value}`),
  );
  return `HTTP ${[statusWords(status), ...lines].join('\n')}\n\n`;
}

const withNewline = (text: string): string => (text === '' || text.endsWith('\n') ? text : `${text}\n`);

export const COMMANDS: readonly Command[] = [use];
