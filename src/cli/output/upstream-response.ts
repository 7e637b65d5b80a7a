/** Prints the response of an upstream: its body on standard output, and what else a person should know as notices. */
import type { UseResponse } from '../../client/types.ts';
import { decodeBody } from '../../client/use.ts';
import { http } from '../../platform/node-http.ts';
import { EXIT } from '../errors.ts';
import { printNotice, type Terminal } from '../terminal.ts';
import { escapeControls, pluralize } from './cells.ts';

/** Returns the exit code. */
export function printUpstreamResponse(terminal: Terminal, reply: UseResponse, hasHead: boolean): number {
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
    printNotice(terminal, `The value was masked in the response, in ${pluralize(redactions, 'place')}.`);
  if (isTruncated) printNotice(terminal, 'WARNING  the response was cut at 2 MiB, the limit of one call.');
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

/** Escapes what could steer a terminal, and keeps lines and tabs. */
function escapeText(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll(/[^\n\t]+/g, escapeControls);
}
