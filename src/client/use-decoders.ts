/** Checks of the responses about uses. Their maps have keys that upstreams and services choose. */
import { type Decoder, invalid, isText, object } from './decoders.ts';
import type * as types from './types.ts';

/** The values of a map; `[null]` if it is not one. */
const valuesOf = (body: unknown): readonly unknown[] =>
  typeof body === 'object' && body !== null && !Array.isArray(body) ? Object.values(body) : [null];

const decodeHeaders: Decoder<types.UseResponse['headers']> = (body) => {
  const isValid = valuesOf(body).every((value) => isText(value) || (Array.isArray(value) && value.every(isText)));
  if (!isValid) throw invalid('headers must be text or a list of text, by name');
  return body as types.UseResponse['headers'];
};
const decodeVariables: Decoder<types.UseLeaseWire['env']> = (body) => {
  if (!valuesOf(body).every(isText)) throw invalid('env must be text, by name');
  return body as types.UseLeaseWire['env'];
};

export const decodeUse = object<types.UseResponse>({
  lease_id: 'text',
  status: 'integer',
  headers: decodeHeaders,
  body: 'text',
  body_encoding: 'text',
  redactions: 'integer',
  truncated: 'boolean',
});
export const decodeUseLease = object<types.UseLeaseWire>({
  lease_id: 'text',
  token: 'text',
  base_url: 'text',
  expires_at: 'text',
  env: decodeVariables,
});
