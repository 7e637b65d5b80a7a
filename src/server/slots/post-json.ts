/** Calls the services that keep the secrets of slots. */
import { HttpError, type HttpRequest, sendRequest } from '../http-request.ts';
import { SlotKindError } from './slot-kind.ts';

const TIMEOUT_MS = 5000;

export interface ServiceResponse {
  readonly status: number;
  /** Empty if the body is not a JSON object. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Posts JSON to `service`, which messages name. Resolves to any response. @throws SlotKindError */
export async function postJson(
  service: string,
  { url, headers, body, ca }: Pick<HttpRequest, 'url' | 'headers' | 'body' | 'ca'>,
): Promise<ServiceResponse> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const { status, text } = await sendRequest({ method: 'POST', url, headers, body, ca, agent: null, signal });
    return { status, fields: toFields(parseJson(text)) };
  } catch (error) {
    if (error instanceof HttpError) throw new SlotKindError(`${service} ${error.message}`);
    if (signal.aborted) throw new SlotKindError(`${service} cannot be reached: no response in time`);
    throw error;
  }
}

/** Null for text that is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Empty for a value that is not an object. */
export function toFields(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}
