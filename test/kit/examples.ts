/** Valid requests, from the examples of the fields of a resource. */
import { entriesOf, type Fields, isInRequests } from '../../src/engine/field.ts';

/** A request with every field that a request can have. */
export function exampleOf({ fields }: { readonly fields: Fields }): Record<string, unknown> {
  const given = entriesOf(fields).filter(({ field }) => isInRequests(field));
  return Object.fromEntries(given.map(({ wire, field }) => [wire, field.example]));
}
