/** Takes a backup as a stream. */
import type { ApiClient, CallOptions } from './api-client.ts';
import { LeaseholdError } from './errors.ts';

/** The headers come when the snapshot is taken, which takes long for a large vault. */
const SNAPSHOT_TIMEOUT_MS = 600_000;

/** The records of a backup; see docs/formats.md. @throws LeaseholdError */
export async function takeBackup(api: ApiClient, { signal }: CallOptions): Promise<ReadableStream<Uint8Array>> {
  const { body, headers } = await api.stream({
    method: 'POST',
    path: '/api/v1/backup',
    retry: 'never',
    signal,
    timeoutMs: SNAPSHOT_TIMEOUT_MS,
  });
  if (body !== null && headers.get('content-type')?.startsWith('application/x-ndjson') === true) return body;
  throw new LeaseholdError('INVALID_RESPONSE', 'the response is not a backup');
}
