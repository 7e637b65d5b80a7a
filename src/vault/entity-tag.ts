/**
 * The entity tag of a resource: a digest of the `data` of its response, so that it is the same on every node and after
 * a restart. SOURCE: RFC 9110, section 8.8.3; docs/decisions.md, "Conditional requests".
 */
import { sha256Base64 } from '../crypto/primitives.ts';

/** The form of every tag. */
export const ENTITY_TAG = '"[A-Za-z0-9+/]{43}="';

/** A strong tag. WHY with sorted fields: a row of the store and a new one may have them in different orders. */
export function entityTag(data: object): string {
  const text = JSON.stringify(data, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return `"${sha256Base64(text)}"`;
}
