/** The export of the audit log: complete however it is fragmented, and never accepted when truncated. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { readEntries } from '../../src/client/audit.ts';
import type { AuditEntry } from '../../src/client/leasehold.ts';
import { collect, setScene, throughProxy, withCode } from './fixture.ts';

const shared = await setScene({ after });

const EXPORT = '/api/v1/audit/export';
const isExport = ({ path }: { path: string }): boolean => path === EXPORT;

function streamOf(pieces: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  const left = [...pieces];
  return new ReadableStream({
    pull(controller) {
      const piece = left.shift();
      if (piece === undefined) controller.close();
      else controller.enqueue(piece);
    },
  });
}

/** Not every stream of every browser can be iterated. */
function withoutIterator(stream: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  Object.defineProperty(stream, Symbol.asyncIterator, { value: undefined });
  return stream;
}

test('an export is the log, oldest first, entry for entry, with its head', async (t) => {
  const { asAdmin, admin } = await throughProxy(t, shared);
  for (let at = 0; at < 30; at++) await admin.credentials.readMetadata('prod/db/password');
  const { head, entries } = await asAdmin().audit.export();
  const exported = await collect(entries);
  const listed = await admin.audit.list({ order: 'asc', limit: 1000 });
  assert.ok(exported.length > 30);
  // Only the export has the states of rows.
  const shown = exported.map((entry) => Object.entries(entry).filter(([key]) => key !== 'subject' && key !== 'state'));
  assert.deepEqual(
    shown.map((fields) => Object.fromEntries(fields)),
    listed.data,
  );
  assert.match(head ?? '', new RegExp(`^${exported.length} ${exported.at(-1)?.hmac.replaceAll('+', '\\+')} `));
});

test('the stream may be split after every byte, or between any two', async () => {
  const entries = ['zwölf 𝄞', '', '"quoted"\\n'].map((reason, at) => ({ seq: at + 1, reason }));
  const bytes = new TextEncoder().encode(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
  const read = (pieces: readonly Uint8Array[]) => collect(readEntries(withoutIterator(streamOf(pieces)), undefined));
  for (let at = 0; at <= bytes.length; at++) {
    assert.deepEqual(await read([bytes.subarray(0, at), bytes.subarray(at)]), entries);
  }
  assert.deepEqual(await read([...bytes].map((byte) => Uint8Array.of(byte))), entries);
  assert.deepEqual(await read([]), []);
  for (let length = 1; length < bytes.length; length++) {
    const isWhole = bytes[length - 1] === 0x0a;
    const short = read([bytes.subarray(0, length)]);
    if (isWhole) assert.ok((await short).length < entries.length);
    else await assert.rejects(short, withCode('UNREACHABLE', null), `${length} bytes`);
  }
});

test('a truncated export is an error, even if it ends at the end of a line', async (t) => {
  const { asAdmin, between, admin } = await throughProxy(t, shared);
  const { bytes } = await admin.audit.export();
  const whole = await new Response(bytes).text();
  const firstLine = Buffer.byteLength(`${whole.split('\n')[0]}\n`);
  for (const kept of [0, 10, firstLine, firstLine + 10, Buffer.byteLength(whole)]) {
    between.next({ bytes: kept }, isExport);
    const got: AuditEntry[] = [];
    const reading = async (): Promise<void> => {
      for await (const entry of (await asAdmin({ retries: 0 }).audit.export()).entries) got.push(entry);
    };
    await assert.rejects(reading(), withCode('UNREACHABLE', null), `${kept} bytes`);
    const lines = whole.trimEnd().split('\n').length;
    assert.ok(kept < firstLine ? got.length === 0 : got.length >= 1 && got.length <= lines);
  }
});

test('an endless line and invalid UTF-8 are rejected', async () => {
  const long = new Uint8Array(700_000).fill(0x61);
  await assert.rejects(
    collect(readEntries(streamOf([long, long, long]), undefined)),
    withCode('INVALID_RESPONSE', null),
  );
  const broken = Uint8Array.of(0x22, 0xff, 0x22, 0x0a);
  await assert.rejects(collect(readEntries(streamOf([broken]), undefined)), withCode('UNREACHABLE', null));
});

test('a reader that stops closes the connection', async (t) => {
  const { asAdmin } = await throughProxy(t, shared);
  let isCancelled = false;
  const watched: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init);
    const [line] = (await answer.text()).split('\n');
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new TextEncoder().encode(`${line}\n`)),
      cancel: () => {
        isCancelled = true;
      },
    });
    return new Response(endless, { status: answer.status, headers: answer.headers });
  };
  for await (const { seq } of (await asAdmin({ fetch: watched }).audit.export()).entries) if (seq === 1) break;
  assert.equal(isCancelled, true);
});

test('logins and retries happen before the first byte only', async (t) => {
  const { asAdmin, between } = await throughProxy(t, shared);
  between.next('cut before', isExport);
  const { entries } = await asAdmin().audit.export();
  assert.equal(between.count(`GET ${EXPORT}`), 2);
  assert.ok((await collect(entries)).length > 3);
});
