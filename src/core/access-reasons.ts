/**
 * Explains many decisions about one agent with the same sentences as `explain`. WHY not that function: it scans all
 * patterns of the agent for each denial; here they are sorted once.
 */
import { type Decision, explainWith } from './decision.ts';
import type { AgentName } from './names.ts';
import type { CredentialPath } from './path.ts';
import type { Pattern } from './pattern.ts';
import type { Action } from './policy.ts';
import type { PolicyIndex } from './policy-index.ts';

export class AccessReasons {
  readonly #policies: PolicyIndex;
  readonly #agent: AgentName;
  /** The patterns of an action, in order. */
  readonly #patterns = new Map<Action, readonly Pattern[]>();

  constructor(policies: PolicyIndex, agent: AgentName) {
    this.#policies = policies;
    this.#agent = agent;
  }

  explain(decision: Decision, action: Action, path: CredentialPath): string {
    const question = { policies: this.#policies, agent: this.#agent, isRegistered: true, action, path };
    return explainWith(decision, question, () => nearestOf(this.#patternsOf(action), path));
  }

  #patternsOf(action: Action): readonly Pattern[] {
    const known = this.#patterns.get(action);
    if (known !== undefined) return known;
    const patterns = [...this.#policies.grantedPatterns(this.#agent, action)].sort();
    this.#patterns.set(action, patterns);
    return patterns;
  }
}

/**
 * As `nearestPattern`, of patterns in order: the longest common prefix is that of a neighbour of the path, and the
 * first pattern with this prefix follows the prefix.
 */
export function nearestOf(patterns: readonly Pattern[], path: CredentialPath): Pattern | null {
  const at = lowerBound(patterns, path);
  const longest = Math.max(commonLength(patterns[at - 1], path), commonLength(patterns[at], path));
  return patterns[lowerBound(patterns, path.slice(0, longest))] ?? null;
}

function commonLength(pattern: Pattern | undefined, path: CredentialPath): number {
  if (pattern === undefined) return 0;
  let common = 0;
  while (common < pattern.length && pattern[common] === path[common]) common++;
  return common;
}

/** The index of the first pattern that is not before the text. */
function lowerBound(patterns: readonly Pattern[], text: string): number {
  let [low, high] = [0, patterns.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((patterns[middle] ?? '') < text) low = middle + 1;
    else high = middle;
  }
  return low;
}
