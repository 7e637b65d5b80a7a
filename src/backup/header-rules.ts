/** The rules of a backup's header. The CLI makes the name of a file from its fields, and prints them. */
import { count, HEAD_RULES, KEYSET_RULES, mac, SLOT_RULES, slotKind, slotName, time } from './column-rules.ts';
import {
  anyText,
  equalTo,
  type FieldRule,
  integer,
  isoTime,
  listOf,
  mapOf,
  matching,
  nullable,
  objectOf,
  oneOf,
} from './field-rules.ts';
import { BACKUP_FORMAT } from './records.ts';
import { ROW_RULES } from './row-rules.ts';

const MAX_SLOTS = 1000;
const MAX_COLUMNS = 100;

const vaultId = matching(/^[A-Za-z0-9_-]{22}$/, 22, 'must be 22 characters of base64url');
const keyCheck = mac;

const tables: FieldRule = (value) =>
  mapOf(/^[a-z_]{1,64}$/, listOf(anyText(64), 1, MAX_COLUMNS), Object.keys(ROW_RULES).length)(value) ??
  (Object.keys(Object(value)).every((name) => Object.hasOwn(ROW_RULES, name)) ? null : 'has an unknown table');

/** Three numbers, and perhaps the name of a release before them. SOURCE: Semantic Versioning 2.0.0, 9. */
export const VERSION_RULE: FieldRule = matching(
  /^\d{1,5}\.\d{1,5}\.\d{1,5}(?:-[0-9A-Za-z.-]{1,40})?$/,
  58,
  'must be a version',
);

export const HEADER_RULES: FieldRule = objectOf({
  format: equalTo(BACKUP_FORMAT),
  leasehold: VERSION_RULE,
  created_at: isoTime,
  store: oneOf(['sqlite', 'postgres']),
  schema: integer(1, 9999),
  vault_id: vaultId,
  log_end: nullable(objectOf({ seq: count, hmac: mac, mac: mac })),
  key_slots: listOf(objectOf({ name: slotName, kind: slotKind }), 0, MAX_SLOTS),
  keys: objectOf({ keyCheck, vaultId, keyset: KEYSET_RULES, slots: listOf(SLOT_RULES, 0, MAX_SLOTS) }),
  vault: objectOf({
    keyCheck,
    vaultId,
    createdAt: time,
    highWaterTime: time,
    head: nullable(HEAD_RULES),
    highestSeq: count,
  }),
  tables,
});
