// An agent that may use a credential cannot get its value from an upstream that repeats it in a body, in any of the
// encodings that servers and libraries write.

import assert from 'node:assert/strict';
import { alignments, attempt, tokenOf } from './theft-fixture.ts';

/** The upstream repeats the value in the body, in each of the forms. */
function bodies(name: string, forms: readonly ((value: string) => string | Uint8Array)[]): void {
  attempt(name, async ({ echo }) => {
    for (const form of forms) {
      const answer = await echo({}, (response, request) => response.end(form(tokenOf(request))));
      assert.equal(answer.status, 200, answer.text);
      assert.ok(answer.body.data.redactions > 0);
    }
  });
}

const utf16le = (text: string): Buffer => Buffer.from(text, 'utf16le');
const replace = (text: string, marks: RegExp, form: (code: string) => string): string =>
  text.replaceAll(marks, (mark) => form(mark.charCodeAt(0).toString(16)));
bodies('the body repeats the request’s header', [(value) => `authorization: Bearer ${value}`]);
bodies('the body is UTF-16 in either order', [
  (value) => Buffer.concat([Buffer.from([0xff, 0xfe]), utf16le(`you sent ${value}.`)]),
  (value) => utf16le(`\ufeffyou sent ${value}.`).swap16(),
]);
bodies('the body is UTF-7 or has a byte order mark', [(value) => `+AGE-${value}+AGE-`, (value) => `\ufeff${value}`]);
bodies('the body is hexadecimal in either case', [
  (value) => Buffer.from(`x${value}`).toString('hex'),
  (value) => Buffer.from(`x${value}`).toString('hex').toUpperCase(),
]);
bodies(
  'the body is base64 at each alignment',
  [0, 1, 2].map((at) => (value) => alignments(value, 'base64')[at] ?? ''),
);
bodies('the body is base64url at each alignment', [
  ...[0, 1, 2].map((at) => (value: string) => alignments(value, 'base64url')[at] ?? ''),
]);
bodies('the body is HTML, with the escapes of several libraries', [
  (value) => replace(value, /[&<>"']/g, (code) => `&#x${code};`),
  (value) => value.replaceAll(/[&<>"']/g, (mark) => `&#${mark.charCodeAt(0)};`),
  (value) => value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&#34;'),
  (value) =>
    replace(
      value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;'),
      /[/=]/g,
      (code) => `&#x${code.toUpperCase()};`,
    ),
]);
bodies('the body is JSON, with the escapes of several libraries', [
  (value) => JSON.stringify({ value }),
  (value) => JSON.stringify({ value: JSON.stringify({ value }) }),
  (value) => JSON.stringify(value).replaceAll('/', '\\/'),
  (value) => replace(JSON.stringify(value), /[<>&]/g, (code) => `\\u00${code}`),
  (value) => `"${replace(value, /[<>&"'+]/g, (code) => `\\u00${code.toUpperCase()}`)}"`,
  (value) => `"${replace(value, /[<>&"']/g, (code) => `\\u00${code.toUpperCase()}`)}"`,
]);
bodies('the body is a form or a URL, escaped once or twice', [
  encodeURIComponent,
  (value) =>
    encodeURIComponent(value)
      .replaceAll(/%../g, (byte) => byte.toLowerCase())
      .replaceAll('%', '%25'),
  (value) => encodeURIComponent(encodeURIComponent(value)),
  (value) => new URLSearchParams({ value }).toString(),
]);
bodies('the body is wrapped at any column, or coloured', [
  (value) => value.replaceAll(/.{7}/g, '$&\r\n'),
  (value) => value.replaceAll(/.{11}/g, '$&\x1b[31m'),
  (value) =>
    (
      Buffer.from(value)
        .toString('base64')
        .match(/.{1,16}/g) ?? []
    ).join('\n'),
]);
bodies('the body is a multipart message', [
  (value) => `--b\r\nContent-Range: bytes 0-9/40\r\n\r\n${value}\r\n--b--`,
  (value) => `--b\r\nContent-Transfer-Encoding: base64\r\n\r\n${Buffer.from(value).toString('base64')}\r\n--b--`,
]);
