/** The preconditions of a request. SOURCE: docs/decisions.md, "Requests". */

/**
 * Conditions of a request on its target. No resource has an entity tag, so a list of tags never matches.
 * SOURCE: RFC 9110, section 13.
 */
export interface Preconditions {
  readonly ifMatch: 'any' | 'tags' | null;
  readonly ifNoneMatch: 'any' | null;
}

/** Whether the preconditions hold. They are checked only if the operation would succeed without them. */
export function meets({ ifMatch, ifNoneMatch }: Preconditions, exists: boolean): boolean {
  return exists ? ifMatch !== 'tags' && ifNoneMatch === null : ifMatch === null;
}
