/**
 * A reference implementation of the decision: a loop over a list. It shares no code with `src` and need not be fast.
 * SOURCE: docs/decisions.md, "Policies".
 */

export interface PlainPolicy {
  readonly name: string;
  readonly principal: string;
  readonly resources: readonly string[];
  readonly actions: readonly string[];
  readonly maxTtlSeconds: number;
  readonly createdAt: number;
}

export function patternCovers(pattern: string, path: string): boolean {
  if (pattern === '*') return true;
  const wanted = pattern.split('/');
  const given = path.split('/');
  const isOpen = wanted.at(-1) === '*';
  const stem = isOpen ? wanted.slice(0, -1) : wanted;
  const isLongEnough = isOpen ? given.length > stem.length : given.length === stem.length;
  return isLongEnough && stem.every((segment, depth) => segment === given[depth]);
}

export function principalNames(principal: string, agent: string): boolean {
  const [, name = ''] = principal.split(':');
  return name.endsWith('*') ? `${agent}`.indexOf(name.replace('*', '')) === 0 : name === agent;
}

function grants(policy: PlainPolicy, agent: string, action: string, path: string): boolean {
  return (
    principalNames(policy.principal, agent) &&
    policy.actions.includes(action) &&
    policy.resources.some((pattern) => patternCovers(pattern, path))
  );
}

/** The most restrictive matching policy: the smallest `max_ttl`, then the name. Null denies. */
export function decidePlainly<P extends PlainPolicy>(
  policies: readonly P[],
  agent: string,
  action: string,
  path: string,
): P | null {
  let decides: P | null = null;
  for (const policy of policies) {
    if (!grants(policy, agent, action, path)) continue;
    const isTighter = decides === null || policy.maxTtlSeconds < decides.maxTtlSeconds;
    const isFirstOfEquals =
      decides !== null && policy.maxTtlSeconds === decides.maxTtlSeconds && policy.name < decides.name;
    if (isTighter || isFirstOfEquals) decides = policy;
  }
  return decides;
}
