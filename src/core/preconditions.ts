/**
 * The preconditions of a request. They are checked within the decision, on the state of that moment, so that of two
 * operators who change the same version only one succeeds. SOURCE: docs/decisions.md, "Conditional requests".
 */

/** Whether the entity tag of the target is one that the request names. */
type TagMatch = (target: object) => boolean;

/** SOURCE: RFC 9110, section 13. */
export interface Preconditions {
  readonly ifMatch: 'any' | TagMatch | null;
  readonly ifNoneMatch: 'any' | TagMatch | null;
}

/** The target of an operation that succeeds only on an existing one, and whose tag no request can name. */
export const EXISTING_TARGET: object = Object.freeze({});

/** Whether the preconditions hold; `target` is null if it does not exist. */
export function meets({ ifMatch, ifNoneMatch }: Preconditions, target: object | null): boolean {
  if (target === null) return ifMatch === null;
  const includes = (condition: 'any' | TagMatch): boolean => condition === 'any' || condition(target);
  return (ifMatch === null || includes(ifMatch)) && (ifNoneMatch === null || !includes(ifNoneMatch));
}
