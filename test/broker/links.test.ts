// Links of a response: rewritten to the base URL, redacted in the form in which they are rewritten, and bounded.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Maskings } from '../../src/broker/maskings.ts';
import { Redactor } from '../../src/broker/redaction.ts';
import { responseHeaders, rewriteLinks } from '../../src/broker/upstream-response.ts';
import { specFor } from './upstream.ts';

const MARKS = ['+', '/', '=', '&', "'", '"', '~', '\\', '<', '>', '`', '{', '|', '}', '^', ' ', '%', '#', '?', ';'];
const ORIGIN = 'http://127.0.0.1:80';
const prefix = '/use/a/-';

test('a value with any mark is redacted in links, as it is and as URLs escape it', async () => {
  const maskings = new Maskings();
  for (const mark of MARKS) {
    const value = `pass${mark}word${mark}9zQ`;
    const spec = specFor(
      { port: 80, caPem: null },
      { value, placement: { kind: 'query', name: 'key' }, linkPrefix: prefix },
    );
    const masking = await maskings.for(spec);
    const escaped = [
      value,
      encodeURIComponent(value),
      encodeURI(value),
      new URLSearchParams({ value }).toString().slice(6),
    ];
    for (const text of escaped) {
      for (const name of ['Location', 'Content-Location', 'Link']) {
        for (const link of [`${ORIGIN}/a?b=${text}`, `/a/${text}/b`, `https://other.example/${text}`]) {
          const sent = name === 'Link' ? `<${link}>; rel=next` : link;
          const headers = await responseHeaders([[name, sent]], spec, false, new Redactor(masking));
          // Nothing of it is left, in any spelling.
          for (const [, shown] of headers) assert.doesNotMatch(shown, /pass|word|9zQ/, `${name}: ${sent}: ${shown}`);
        }
      }
    }
  }
});

test('headers with many or long links are removed, and the others stay', () => {
  const spec = specFor({ port: 80, caPem: null }, { linkPrefix: prefix });
  const link = (count: number): string => Array.from({ length: count }, () => '</a>; rel=next').join(', ');
  assert.deepEqual(rewriteLinks([['Link', link(2)]], spec), [
    ['Link', `<${prefix}/a>; rel=next, <${prefix}/a>; rel=next`],
  ]);
  for (const value of ['<>'.repeat(31_000), `</${'a'.repeat(60_000)}>`, link(65), '<'.repeat(60_000)]) {
    assert.deepEqual(
      rewriteLinks(
        [
          ['Link', value],
          ['X-Other', 'b'],
        ],
        spec,
      ),
      [['X-Other', 'b']],
    );
  }
  assert.deepEqual(rewriteLinks([['Location', `/${'a'.repeat(60_000)}`]], spec), []);
});
