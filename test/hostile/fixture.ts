// A server with data, and the assertion that hostile requests change none of it.

import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import type { ApiErrorCode } from '../../src/engine/errors.ts';
import type { Client, TestResponse } from '../kit/client.ts';
import { type DatabaseRow, dumpCallerData } from '../kit/direct-db.ts';
import type { Scope } from '../kit/directory.ts';
import { sendRaw, toResponse } from '../kit/raw.ts';
import { assertHeaders, assertRejected } from '../kit/responses.ts';
import { startTestService, type TestService } from '../kit/service.ts';

/** A request as sent; omitted parts default to those of a valid administrator request. */
export interface RequestParts {
  readonly method?: string;
  readonly target?: string;
  /** The whole request line, instead of method and target. */
  readonly line?: string;
  readonly headers?: readonly string[];
  /** Null leaves the Host out. */
  readonly host?: string | null;
  /** Null leaves the Authorization out. */
  readonly token?: string | null;
  readonly body?: string | Uint8Array;
  readonly type?: string | null;
}

export interface Fixture {
  readonly service: TestService;
  /** An agent that may do everything below `open/`. */
  readonly agent: Client & { readonly token: string };
  bytesOf(asking: RequestParts): Buffer;
  /** Sends the request and asserts the rules for every response: never a 5xx, the shape, the headers. */
  ask(asking: RequestParts): Promise<TestResponse>;
  /** The error's code, or the status of a success; `closed` where the connection was closed without a response. */
  codeOf(asking: RequestParts): Promise<string>;
  /** Asserts the code of every text together, so that a failure shows every difference. */
  assertCodes(
    rows: Readonly<Record<string, readonly string[]>>,
    toRequest: (key: string) => RequestParts,
  ): Promise<void>;
  /**
   * Asserts that `act` changes no row and no key file, adds no audit entries except those given as `event result`,
   * and leaves a healthy service with a valid log.
   */
  assertUnchangedBy(act: () => Promise<unknown>, recorded?: readonly string[]): Promise<void>;
}

/** The words of a table, separated by spaces and line ends. */
export function words([text = '']: TemplateStringsArray): string[] {
  return text.trim().split(/\s+/);
}

/** Every `step`th row, from another one for each index, so that a table meets every entry point in few requests. */
export function share<T>(rows: readonly T[], index: number, step: number): readonly T[] {
  return rows.filter((_, at) => (at + index) % step === 0);
}

const STORED_AT = 'open/stored';
const HOST = 'localhost';

export async function startFixture(scope: Scope, flags: readonly string[] = []): Promise<Fixture> {
  const service = await startTestService(scope, flags);
  const agent = await service.agent('insider', { 'open/*': ['retrieve', 'list', 'store', 'delete'] });
  assert.equal((await service.admin.post('/api/v1/credentials', { path: STORED_AT, value: 'stored' })).status, 201);
  const bytesOf = (asking: RequestParts) => toBytes(asking, service.adminToken);
  const ask = async (asking: RequestParts): Promise<TestResponse> => {
    const answer = toResponse(await sendRaw(service.address, bytesOf(asking)));
    assertSound(answer);
    return answer;
  };
  const codeOf = async (asking: RequestParts): Promise<string> => {
    const raw = await sendRaw(service.address, bytesOf(asking));
    if (raw.status === 0) return raw.isClosed ? 'closed' : 'silent';
    const answer = toResponse(raw);
    assertSound(answer);
    return answer.body?.error?.code ?? String(answer.status);
  };
  return {
    service,
    agent,
    bytesOf,
    ask,
    codeOf,
    async assertCodes(rows, toRequest) {
      const found: [text: string, code: string][] = [];
      const expected = Object.entries(rows).flatMap(([code, texts]) => texts.map((text) => [text, code] as const));
      for (const [text] of expected) found.push([text, await codeOf(toRequest(text))]);
      assert.deepEqual(found, expected);
    },
    async assertUnchangedBy(act, recorded = []) {
      const before = await readStored(service.dataDir);
      await act();
      const after = await readStored(service.dataDir);
      const now = Date.now();
      assert.deepEqual(withoutExpired(after.rows, now), withoutExpired(before.rows, now));
      assert.deepEqual(after.files, before.files);
      assert.deepEqual(after.entries.slice(before.entries.length), recorded);
      assert.deepEqual((await service.anonymous.get('/api/v1/health')).body, { data: { status: 'ok' } });
      assert.equal((await service.admin.get('/api/v1/audit/verify')).body.data.valid, true);
    },
  };
}

/** Asserts the rules for every response to any input. */
export function assertSound(answer: TestResponse): void {
  assert.equal(answer.status >= 100 && answer.status < 500, true, `${answer.status} ${answer.text}`);
  if (answer.status < 400) assertHeaders(answer);
  // A response to HEAD has no body and therefore no code.
  else if (answer.text !== '') assertRejected(answer, answer.body?.error?.code as ApiErrorCode);
}

function toBytes(asking: RequestParts, adminToken: string): Buffer {
  const { method = 'GET', target = '/api/v1/credentials', headers = [], host = HOST, body = '' } = asking;
  const token = asking.token === undefined ? adminToken : asking.token;
  const type = asking.type === undefined && body.length > 0 ? 'application/json' : (asking.type ?? null);
  const isFramed = headers.some((line) => /^(?:content-length|transfer-encoding)\b/i.test(line));
  const isKept = headers.some((line) => /^connection:/i.test(line));
  const content = Buffer.from(body);
  const lines = [
    asking.line ?? `${method} ${target} HTTP/1.1`,
    ...(host === null ? [] : [`Host: ${host}`]),
    ...(token === null ? [] : [`Authorization: Bearer ${token}`]),
    ...(type === null ? [] : [`Content-Type: ${type}`]),
    ...(isFramed || content.length === 0 ? [] : [`Content-Length: ${content.length}`]),
    ...headers,
    ...(isKept ? [] : ['Connection: close']),
  ];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), content]);
}

type Rows = Readonly<Record<string, readonly DatabaseRow[]>>;

/** WHY: challenges end after a minute, and the server removes them while a test with many requests runs. */
function withoutExpired({ spent_challenges = [], ...rows }: Rows, now: number): Rows {
  return { ...rows, spent_challenges: spent_challenges.filter(({ expires_at }) => Number(expires_at) > now) };
}

/** Everything stored, read directly: rows except the log and its head, key files, and the log. */
async function readStored(dataDir: string): Promise<{ rows: Rows; files: string[]; entries: string[] }> {
  const dump = await dumpCallerData(dataDir);
  const log = (dump['audit_entries'] ?? []).toSorted((a, b) => Number(a['seq']) - Number(b['seq']));
  return {
    rows: Object.fromEntries(Object.entries(dump).filter(([table]) => !table.startsWith('audit_'))),
    files: globSync('**/{*,.*}', { cwd: join(dataDir, 'agents') }).sort(),
    entries: log.map(({ event_type, result }) => `${event_type} ${result}`),
  };
}
