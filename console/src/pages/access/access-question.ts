/** The simulator's question from the URL, checked with the server's parsers, and its answer. */

import type { Tagged } from '../../../../src/client/leasehold.ts';
import type { CredentialTargets } from '../../../../src/client/types.ts';
import { isOperatorName, type PrincipalName, parsePrincipalName } from '../../../../src/core/names.ts';
import { parsePath } from '../../../../src/core/path.ts';
import { ruleBroken } from '../../../../src/engine/errors.ts';
import {
  type AccessQuery,
  type Explanation,
  explainAccess,
} from '../../../../src/vault/policies/access-explanation.ts';
import { type ApprovalTerms, combineRules } from '../../../../src/vault/policies/approval-rule.ts';
import { isAction, Policy } from '../../../../src/vault/policies/policy.ts';
import { parseMethod } from '../../../../src/vault/use/target.ts';
import { parseUrl } from '../../../../src/vault/use/upstream-url.ts';
import { client } from '../../session/console-client.ts';
import { readTargets } from '../credentials/credential-queries.ts';

export const QUESTION_FIELDS = ['for', 'action', 'path', 'method', 'url'] as const;
export type QuestionFields = Readonly<Record<(typeof QUESTION_FIELDS)[number], string>>;
/** Limit for explaining each policy separately. */
const MAX_EXPLAINED = 5000;
const PAGE_ROWS = 1000;
const MAX_OPERATORS_READ = 1000;

/**
 * The whole URL for `//host/path`: with the scheme and port of a target for that host, otherwise https. SOURCE: RFC
 * 3986, section 4.2 (network-path reference)
 */
export async function completeUrl({ path, url }: QuestionFields, signal: AbortSignal): Promise<string> {
  const [, host = '', rest = ''] = /^\/\/(\[[^\]]*\]|[^/:]*)(.*)$/.exec(url) ?? [];
  const origins = (await readTargets(path, signal))?.data.targets.map(({ origin }) => origin) ?? [];
  const origin = origins.find((each) => URL.canParse(each) && new URL(each).hostname === host);
  return `${origin ?? `https://${host}`}${rest}`;
}

export type ReadQuestion =
  | { readonly question: AccessQuery; readonly problems: null }
  | { readonly question: null; readonly problems: Partial<QuestionFields> };

export function readQuestion({ for: agent, action, path, method, url }: QuestionFields): ReadQuestion {
  const hasRequest = action === 'use' && url !== '';
  const found = {
    for: ruleBroken(() => parsePrincipalName(agent, 'agent')),
    path: ruleBroken(() => parsePath(path)),
    method: hasRequest ? ruleBroken(() => parseMethod(method)) : null,
    url: hasRequest ? ruleBroken(() => parseUrl(url, 'url')) : null,
  };
  const problems = Object.fromEntries(Object.entries(found).filter(([, rule]) => rule !== null));
  if (Object.keys(problems).length > 0 || !isAction(action)) return { question: null, problems };
  const request = hasRequest ? { method: parseMethod(method), url } : null;
  return {
    question: { agent: parsePrincipalName(agent, 'agent'), action, path: parsePath(path), request },
    problems: null,
  };
}

export type UseObstacle = 'no credential at this path' | 'the credential has no targets';

export interface SimulatedAccess {
  readonly question: AccessQuery;
  readonly explanation: Explanation;
  /** The policies; null if there are too many to explain each. */
  readonly policies: readonly Policy[] | null;
  /** Null if no approval is needed. */
  readonly approval: ApprovalTerms | null;
  /** The current targets, if an additional one would allow the request; null otherwise. */
  readonly targets: Tagged<CredentialTargets> | null;
  /** A finding outside the policies, which denies a brokered request in any case. */
  readonly finding: UseObstacle | null;
  /**
   * Whether the agent or operator exists. Policies can name a principal that does not exist, and is denied everything.
   */
  readonly isRegistered: boolean;
}

export async function askServer(question: AccessQuery, signal: AbortSignal): Promise<SimulatedAccess> {
  const { agent, action, path: resource, request } = question;
  const body = { agent, action, resource, ...(request === null ? {} : { request }) };
  const [simulation, policies, isRegistered, finding] = await Promise.all([
    client.policies.simulate(body, { signal }),
    readPolicies(signal),
    isKnown(agent, signal),
    action === 'use' ? findObstacle(resource, signal) : null,
  ]);
  const explanation = explainAccess(question, policies, simulation);
  const matching = new Set(explanation.policies?.flatMap(({ failed, name }) => (failed === null ? [name] : [])));
  const demanding = policies?.filter(({ name, approval }) => matching.has(name) && approval?.for === action) ?? [];
  const targets = explanation.target === null ? null : await readTargets(resource, signal);
  const approval = combineRules(demanding);
  return { question, explanation, policies, approval, targets, finding, isRegistered };
}

/** Uses list calls: a 404 would be logged as an error in the browser console. */
async function isKnown(name: PrincipalName, signal: AbortSignal): Promise<boolean> {
  if (isOperatorName(name)) {
    const { data, meta } = await client.operators.list({ limit: MAX_OPERATORS_READ }, { signal });
    return meta.total > MAX_OPERATORS_READ || data.some((operator) => `operator:${operator.name}` === name);
  }
  // Lists agents whose names begin with this name, sorted by name, so the agent itself comes first.
  const { agents } = await client.overview.matrix({ agent: name, agent_limit: 1, path_limit: 1 }, { signal });
  return agents[0]?.name === name;
}

async function findObstacle(path: string, signal: AbortSignal): Promise<UseObstacle | null> {
  const { paths } = await client.overview.matrix({ prefix: path, path_limit: 1, agent_limit: 1 }, { signal });
  if (paths[0] !== path) return 'no credential at this path';
  return (await readTargets(path, signal)) === null ? 'the credential has no targets' : null;
}

async function readPolicies(signal: AbortSignal): Promise<readonly Policy[] | null> {
  const policies: Policy[] = [];
  for (;;) {
    const { data, meta } = await client.policies.list({ offset: policies.length, limit: PAGE_ROWS }, { signal });
    if (meta.total > MAX_EXPLAINED) return null;
    policies.push(...data.map((policy) => Policy.fromReply(policy)));
    if (data.length < PAGE_ROWS) return policies;
  }
}
