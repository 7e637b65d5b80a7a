/**
 * The rules of the columns, built from the grammars of names, each of which exists once. Rules of JSON columns
 * describe what the store writes, which is not the form of requests.
 */
import { ADMIN_ID, parseActorName, parseCredentialType, UUID } from '../core/names.ts';
import { parsePath } from '../core/path.ts';
import { ruleBroken } from '../engine/errors.ts';
import { type ENTRY_COLUMNS, RESULTS, USE_ENDS } from '../vault/audit/audit-entry.ts';
import { parseSlotName, SLOT_KINDS } from '../vault/keys/keyset.ts';
import { LEASE_KINDS } from '../vault/leases/lease.ts';
import {
  originOf,
  type PlacementFields,
  parsePlacement,
  parseStoredTargets,
  type Target,
} from '../vault/use/target.ts';
import {
  anyText,
  base64,
  either,
  equalTo,
  integer,
  isJsonObject,
  isoTime,
  listOf,
  mapOf,
  matching,
  nullable,
  objectOf,
  oneOf,
  parsed,
  type ValueRule,
} from './value-rules.ts';

/** Up to the end of the year 9999. */
export const time = integer(0, 253_402_300_799_999);
export const count = integer(0, Number.MAX_SAFE_INTEGER);
export const positive = integer(1, Number.MAX_SAFE_INTEGER);
export const uuid = matching(UUID, 36, 'must be a UUID in lower case');
export const holderId = either(equalTo(ADMIN_ID), uuid);
export const mac = base64(32, 32);
/** A public key, or a hash. */
export const bytes32 = base64(32, 32);
export const path = parsed((text) => parsePath(text));
const actorName = parsed((text) => parseActorName(text, 'name'));
export const credentialType = parsed((text) => parseCredentialType(text));
/**
 * A text of the log. WHY any character: it may be from a request's header, and whatever the server has recorded must
 * be restored. What prints it escapes it.
 */
export const logText = anyText(65_536);
const WORD = 'must be a word of a-z and _';
const EVENT = /^[a-z_]+\.[a-z_]+$/;
export const leaseKind = oneOf(LEASE_KINDS);
export const empty = equalTo('');

export const JSON_LENGTH = 4 * 1024 * 1024;
export const keyset = { version: positive, rootVersion: positive, sealed: base64(1, 1_048_576) };
export const slotParameters = mapOf(/^[a-z][a-z_]{0,31}$/, either(integer(0, 999_999_999), anyText(8192)), 32);
export const slotName = parsed((text) => parseSlotName(text));
export const slotKind = oneOf(SLOT_KINDS);
export const sealedRoot = base64(80, 80);

/** The stored form of a target, which a request writes with an origin. */
export const target: ValueRule = (value) => {
  const text = anyText(1024);
  const form = objectOf({
    scheme: oneOf(['https', 'http']),
    host: anyText(260),
    port: integer(1, 65_535),
    paths: listOf(text, 1, 64),
    methods: listOf(text, 1, 32),
    allowNetworks: listOf(text, 0, 32),
    caPem: nullable(anyText(65_536)),
  })(value);
  if (form !== null) return form;
  const { paths, methods, allowNetworks, caPem, ...origin } = value as Target;
  const fields = { origin: originOf(origin), paths, methods, allow_networks: allowNetworks, ca_pem: caPem };
  return withoutField(ruleBroken(() => parseStoredTargets([fields])));
};

export const placement: ValueRule = (value) => {
  if (!isJsonObject(value)) return 'must be an object';
  const { kind, ...others } = value;
  const known = ['bearer', 'header', 'basic', 'query'].some((each) => each === kind);
  const areKnown = Object.entries(others).every(
    ([name, text]) =>
      ['name', 'template', 'username'].includes(name) &&
      (typeof text === 'string' || (name === 'username' && text === null)),
  );
  if (!known || !areKnown) return 'must be a placement of the kind bearer, header, basic or query';
  const fields = Object.fromEntries(Object.entries(value).filter(([, text]) => text !== null));
  return withoutField(ruleBroken(() => parsePlacement(fields as unknown as PlacementFields)));
};

function withoutField(message: string | null): string | null {
  return message === null ? null : message.slice(message.indexOf(': ') + 2);
}

/** The rules of the columns of audit entries. `src/vault/audit/audit-entry.ts` lists the columns. */
export const ENTRY_RULES: Readonly<Record<keyof typeof ENTRY_COLUMNS, ValueRule>> = {
  seq: positive,
  id: uuid,
  timestamp: isoTime,
  event_type: matching(EVENT, 64, 'must be two words separated by a dot'),
  agent_name: actorName,
  resource: logText,
  action: matching(/^[a-z_]+$/, 64, WORD),
  result: oneOf(RESULTS),
  policy_name: logText,
  lease_id: uuid,
  code: matching(/^[a-z_]+$/, 64, WORD),
  reason: logText,
  request_id: logText,
  remote_addr: logText,
  hmac: mac,
  method: logText,
  host: logText,
  target_path: logText,
  status: integer(0, 999),
  bytes_in: count,
  bytes_out: count,
  redactions: count,
  ended: oneOf(USE_ENDS),
  subject: logText,
  state: either(equalTo('removed'), mac),
};
