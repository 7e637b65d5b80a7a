/** Assertions on responses: they check the complete shape, so that no key or header is overlooked. */
import assert from 'node:assert/strict';
import { ERROR_STATUS } from '../../src/api/errors.ts';
import type { ApiErrorCode } from '../../src/engine/errors.ts';
import type { TestResponse } from './client.ts';
import type { TestService } from './service.ts';

type Json = TestResponse['body'];

const RETRIED: ReadonlySet<ApiErrorCode> = new Set(['RATE_LIMITED', 'UNAVAILABLE', 'APPROVAL_PENDING']);
export const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
export const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Asserts that the object has exactly these keys, separated by spaces. */
export function assertKeys(object: Json, keys: string): void {
  assert.deepEqual(Object.keys(object).sort(), keys.split(' ').filter(Boolean).sort());
}

/** Asserts the headers of every response. */
export function assertHeaders({ headers }: TestResponse): void {
  assert.match(headers.get('x-request-id') ?? '', /^[\w-]{4,64}$/);
  assert.equal(headers.get('cache-control'), 'no-store');
  assert.equal(headers.get('x-content-type-options'), 'nosniff');
  assert.deepEqual(
    [...headers.keys()].filter((name) => name.startsWith('access-control-')),
    [],
  );
}

/**
 * Asserts success with `data` and no other key, whose objects have exactly these keys, and returns it. `meta` only if
 * it is expected.
 */
export function dataOf(answer: TestResponse, status: 200 | 201, keys: string, meta: 'meta' | '' = ''): Json {
  assert.equal(answer.status, status, answer.text);
  assert.match(answer.headers.get('content-type') ?? '', /^application\/json/);
  assertHeaders(answer);
  assertKeys(answer.body, `data ${meta}`);
  const { data } = answer.body;
  for (const row of Array.isArray(data) ? data : [data]) assertKeys(row, keys);
  return data;
}

/** Asserts 204 without a body. */
export function assertNoContent(answer: TestResponse): void {
  assert.equal(answer.status, 204, answer.text);
  assert.equal(answer.text, '');
  assertHeaders(answer);
}

/** Asserts the error's code, status, shape and headers; returns its message. */
export function assertRejected(answer: TestResponse, code: ApiErrorCode): string {
  assert.equal(answer.body?.error?.code, code, `${answer.status} ${answer.text}`);
  assert.equal(answer.status, ERROR_STATUS[code]);
  assertKeys(answer.body, 'error');
  const { approval_id, current, ...error } = answer.body.error;
  assertKeys(error, 'code message');
  assert.ok(current === undefined || code === 'PRECONDITION_FAILED');
  assert.equal(answer.headers.get('x-leasehold-approval'), approval_id ?? null);
  assert.match(answer.headers.get('content-type') ?? '', /^application\/json/);
  assertHeaders(answer);
  assert.equal(answer.headers.get('www-authenticate'), answer.status === 401 ? 'Bearer' : null);
  assert.equal(answer.headers.has('retry-after'), RETRIED.has(code));
  assert.equal(answer.headers.has('allow'), code === 'METHOD_NOT_ALLOWED');
  return answer.body.error.message;
}

/** Asserts a 400 whose message names the field, or a part of it such as `field[2]` or `field.name`. */
export function assertInvalid(answer: TestResponse, field: string): void {
  const message = assertRejected(answer, 'INVALID_REQUEST');
  const named = /^(.*?)(?:\[\d+\]|\.\w+)*: /.exec(message)?.[1];
  assert.equal(named, field, `"${message}" does not name ${field}`);
}

/** The audit entries that `act` adds, oldest first. Reading the log adds none. */
export async function auditEntriesOf(
  { admin }: Pick<TestService, 'admin'>,
  act: () => Promise<unknown>,
): Promise<Json[]> {
  const before = await admin.get('/api/v1/audit?limit=1');
  await act();
  const after = await admin.get(`/api/v1/audit?order=asc&limit=1000&offset=${before.body.meta.total}`);
  return after.body.data;
}
