/**
 * Rows of the route table: brokered requests that are one call of the HTTP API. SOURCE: docs/api.md, "Brokered use".
 */
import { isUtf8 } from 'node:buffer';
import { Readable } from 'node:stream';
import { UseResponse } from '../../api/responses.ts';
import type { UseResponse as UseReply } from '../../api/types.ts';
import { groupHeaders } from '../../broker/protocol.ts';
import type { Context } from '../../core/operation.ts';
import { ApiError, invalidRequest } from '../../engine/errors.ts';
import type { DraftOf } from '../../engine/resource.ts';
import { parseUseRequest } from '../../vault/use/base-url.ts';
import { checkForwarded } from '../../vault/use/misuse.ts';
import { findTokens } from '../../vault/use/token-form.ts';
import { UseBody } from '../../vault/use/use-operations.ts';
import { type ReceivedRequest, useCredential } from '../../vault/use/uses.ts';
import type { Vault } from '../../vault/vault.ts';
import { type Route, route } from '../route.ts';

/** The limit of the response's body. More is not read. */
const MAX_BODY_BYTES = 2 * 1024 * 1024;

export const useRoutes: readonly Route[] = [
  route({
    id: 'useCredential',
    method: 'POST',
    path: '/api/v1/use',
    summary: 'Make a request with a credential that the caller does not see.',
    permission: 'credential.use',
    body: UseBody,
    data: UseResponse,
    async handle({ vault, context, body, disconnectSignal }) {
      const call = toCall(body);
      await checkTokens(vault, context, call);
      // The request is aborted if the client disconnects.
      return { data: await useOnce(vault, context, { ...call, signal: disconnectSignal() }) };
    },
  }),
];

async function useOnce(vault: Vault, context: Context, call: ReceivedRequest): Promise<UseReply> {
  const { admitted, head, body, result } = await useCredential(vault, context, call);
  if (head.kind === 'error') {
    body.destroy();
    throw new ApiError('UPSTREAM_FAILED', `The upstream could not be used: ${head.failure}.`);
  }
  const { bytes: read, isTruncated } = await readUpTo(body, MAX_BODY_BYTES);
  const { redactions } = await result;
  const bytes = isTruncated ? withoutTruncatedCharacter(read) : read;
  const isText = isUtf8(bytes);
  return {
    lease_id: admitted.leaseId,
    status: head.status,
    headers: groupHeaders(head.headers, (name) => name.toLowerCase()),
    body: bytes.toString(isText ? 'utf8' : 'base64'),
    body_encoding: isText ? 'utf8' : 'base64',
    redactions,
    truncated: isTruncated,
  };
}

function toCall({ method, url, body, bodyEncoding, ...given }: DraftOf<typeof UseBody.fields>): ReceivedRequest {
  const bytes = body === null ? null : Buffer.from(body, bodyEncoding ?? 'utf8');
  return {
    ...given,
    request: parseUseRequest(method, url, 'url'),
    openBody: () => (bytes === null ? null : Readable.from([bytes])),
    bodyLength: bytes?.length ?? 0,
    isUpgrade: false,
    baseUrl: null,
  };
}

async function checkTokens(vault: Vault, context: Context, { path, request, headers }: ReceivedRequest): Promise<void> {
  const { path: urlPath, query } = 'url' in request ? request.url : request;
  const tokens = findTokens({ path: urlPath, query, headers });
  if (tokens.length === 0) return;
  await checkForwarded(vault, context, tokens, { path, request });
  throw invalidRequest('token', 'must not be part of the url or the headers');
}

/** Reads the body up to a number of bytes, and drops the rest. */
async function readUpTo(body: Readable, maxBytes: number): Promise<{ bytes: Buffer; isTruncated: boolean }> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of body) {
      if (!(chunk instanceof Uint8Array)) continue;
      chunks.push(chunk);
      length += chunk.length;
      if (length > maxBytes) break;
    }
  } catch {
    throw new ApiError('UPSTREAM_FAILED', 'The response of the upstream broke off.');
  }
  const bytes = Buffer.concat(chunks);
  return { bytes: bytes.subarray(0, maxBytes), isTruncated: length > maxBytes };
}

/** Text that was truncated within a character of UTF-8, which has up to four bytes, stays text. */
function withoutTruncatedCharacter(bytes: Buffer): Buffer {
  const lengths = [0, 1, 2, 3].map((rest) => bytes.length - rest);
  return bytes.subarray(
    0,
    lengths.find((length) => isUtf8(bytes.subarray(0, length))),
  );
}
