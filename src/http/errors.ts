/**
 * Maps thrown errors to responses: an `ApiError` keeps its code, errors of the framework receive one, and any other
 * error is a bug.
 */
import type { IncomingMessage } from 'node:http';
import { ERROR_STATUS } from '../api/errors.ts';
import { ApiError, invalidRequest, PreconditionFailed } from '../engine/errors.ts';
import { entityTag } from '../vault/header-digests.ts';
import { storageUnavailable } from '../vault/vault.ts';

export function toErrorResponse(error: ApiError) {
  const headers: Record<string, string> = {};
  const status = ERROR_STATUS[error.code];
  if (status === 401) headers['www-authenticate'] = 'Bearer';
  if (error.retryAfterSeconds !== null) headers['retry-after'] = String(error.retryAfterSeconds);
  const { code, message, approvalId } = error;
  if (approvalId !== null) headers['x-leasehold-approval'] = approvalId;
  const current = error instanceof PreconditionFailed ? error.current : undefined;
  if (current != null) headers['etag'] = entityTag(current);
  const about = approvalId === null ? {} : { approval_id: approvalId };
  const body = { error: { code, message, ...about, ...(current === undefined ? {} : { current }) } };
  return { status, body, headers };
}

const MESSAGES = {
  PAYLOAD_TOO_LARGE: 'The body is too large.',
  UNSUPPORTED_MEDIA_TYPE: 'The body must be application/json.',
  INVALID_REQUEST: 'The request is not well formed.',
  URI_TOO_LONG: 'The URL is too long.',
  HEADERS_TOO_LARGE: 'The headers are too large.',
  REQUEST_TIMEOUT: 'The request did not arrive in time.',
  UNAVAILABLE: 'The server has reached its limit of connections. Try again in a second.',
} as const;

export function defaultError(code: keyof typeof MESSAGES): ApiError {
  return new ApiError(code, MESSAGES[code], code === 'UNAVAILABLE' ? 1 : null);
}

export function undecodableTarget(): ApiError {
  return invalidRequest('target', 'must contain % only before two hexadecimal digits, and decode to UTF-8');
}

/**
 * Whether the client disconnected before the head was sent, which ended the stream of the response.
 * WHY the socket too: an early end of a stream is a defect while the client waits for the response.
 */
export function isAbandoned(error: unknown, { socket }: IncomingMessage): boolean {
  return socket.destroyed && error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE';
}

export function toApiError(error: unknown): ApiError | null {
  if (error instanceof ApiError) return error;
  const unavailable = storageUnavailable(error);
  if (unavailable !== null) return unavailable;
  // The router decodes a target before the first check of it.
  if (error instanceof Error && 'code' in error && error.code === 'FST_ERR_BAD_URL') return undecodableTarget();
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined;
  if (status === 413) return defaultError('PAYLOAD_TOO_LARGE');
  if (status === 415) return defaultError('UNSUPPORTED_MEDIA_TYPE');
  if (status === 414) return defaultError('URI_TOO_LONG');
  if (typeof status === 'number' && status >= 400 && status < 500) return defaultError('INVALID_REQUEST');
  return null;
}
