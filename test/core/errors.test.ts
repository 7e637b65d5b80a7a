// The closed list of errors. SOURCE: docs/api.md, "Errors"; docs/decisions.md, "Requests".
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ERROR_STATUS } from '../../src/api/errors.ts';
import { API_ERROR_CODES, ApiError, type ApiErrorCode, invalidRequest } from '../../src/engine/errors.ts';

const TABLE: Readonly<Record<number, readonly ApiErrorCode[]>> = {
  400: ['INVALID_REQUEST'],
  401: ['UNAUTHENTICATED', 'SESSION_EXPIRED', 'AUTH_FAILED'],
  403: ['ACCESS_DENIED', 'APPROVAL_DENIED', 'APPROVAL_TIMED_OUT', 'APPROVAL_WITHDRAWN', 'NO_APPROVER'],
  404: ['NOT_FOUND'],
  405: ['METHOD_NOT_ALLOWED'],
  408: ['REQUEST_TIMEOUT'],
  409: ['ALREADY_EXISTS', 'LEASE_ENDED', 'APPROVAL_ENDED'],
  412: ['PRECONDITION_FAILED'],
  413: ['PAYLOAD_TOO_LARGE'],
  414: ['URI_TOO_LONG'],
  415: ['UNSUPPORTED_MEDIA_TYPE'],
  421: ['MISDIRECTED_REQUEST'],
  429: ['RATE_LIMITED'],
  431: ['HEADERS_TOO_LARGE'],
  500: ['INTERNAL_ERROR', 'INTEGRITY_FAILURE'],
  502: ['UPSTREAM_FAILED'],
  503: ['APPROVAL_PENDING', 'VAULT_LOCKED', 'UNAVAILABLE'],
};

test('the error codes are those of the list, each with its status', () => {
  const rows = Object.entries(TABLE).flatMap(([status, codes]) => codes.map((code) => [code, Number(status)] as const));
  assert.deepEqual({ ...ERROR_STATUS }, Object.fromEntries(rows));
  assert.deepEqual([...API_ERROR_CODES], Object.keys(ERROR_STATUS));
});

test('a 400 names the field and the rule, and only given errors have retryAfterSeconds', () => {
  assert.equal(invalidRequest('max_ttl', 'must be whole').message, 'max_ttl: must be whole');
  assert.equal(invalidRequest('max_ttl', 'must be whole').code, 'INVALID_REQUEST');
  assert.equal(invalidRequest('max_ttl', 'must be whole').retryAfterSeconds, null);
  assert.equal(new ApiError('RATE_LIMITED', 'later', 7).retryAfterSeconds, 7);
});
