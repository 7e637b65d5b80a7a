/** Callers that are denied again and again, agents that never logged in, and policies that grant nothing. */

import type { AttentionItem } from '../../core/attention.ts';
import { type ActorName, actorResource } from '../../core/names.ts';
import { toRanges } from '../../core/pattern.ts';
import type { Policy } from '../../core/policy.ts';
import { findSeqAt, readHead } from '../../store/audit-log.ts';
import { countCredentials } from '../../store/credential-lists.ts';
import { countDenials } from '../../store/log-columns.ts';
import { FIRST_CREDENTIAL } from '../../store/queries.ts';
import type { ResultOf } from '../../store/statement.ts';
import { countFrom, yieldToEventLoop } from '../paging.ts';
import { type AttentionPart, type AttentionVault, MAX_ITEMS, startTimer } from './part.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MIN_DENIALS = 5;

export async function examineDenials({ store, clock }: AttentionVault): Promise<AttentionPart> {
  const timer = startTimer();
  const { last } = await store.run(readHead());
  const from = await store.run(findSeqAt(new Date(Math.max(0, clock.now() - HOUR_MS)).toISOString()));
  const counts = new Map<string, { agentName: string; resource: string; count: number; firstAt: string }>();
  let place = from === null ? null : (last?.seq ?? null);
  while (from !== null && place !== null && !timer.isUp()) {
    await yieldToEventLoop();
    const step: ResultOf<typeof countDenials> = await store.run(countDenials(store.dialect, from, place));
    for (const row of step.rows) {
      const key = JSON.stringify([row.agentName, row.resource]);
      const known = counts.get(key);
      counts.set(key, known === undefined ? row : { ...row, count: known.count + row.count });
    }
    place = step.next;
  }
  const items = [...counts.values()]
    .filter(({ count }) => count >= MIN_DENIALS)
    .sort((a, b) => b.count - a.count)
    .slice(0, MAX_ITEMS)
    .map(({ agentName, resource, count, firstAt }): AttentionItem => {
      const since = Date.parse(firstAt);
      const text = `${agentName} was denied ${resource} ${count} times in the last hour. Grant it with a policy, or stop the agent from asking.`;
      const subject = actorResource(agentName as ActorName);
      return { kind: 'denied_repeatedly', subject, text, count, since: Number.isNaN(since) ? null : since };
    });
  return { items, isComplete: place === null };
}

/** An agent is only called so if the whole log was read. */
export async function examineLogins({ store, ledger, clock, logColumns }: AttentionVault): Promise<AttentionPart> {
  const { last } = await store.run(readHead());
  const to = last?.seq ?? 0;
  const registeredBy = clock.now() - DAY_MS;
  const agents = ledger.memory.control.agents().filter(({ registeredAt }) => registeredAt <= registeredBy);
  if (agents.length === 0 || to === 0) return { items: [], isComplete: true };
  if ((await logColumns.cover(1, to, startTimer().timeoutMs)) > 1) return { items: [], isComplete: false };
  const loggedIn = new Set<string>();
  for (const { eventType, result, agentName } of logColumns.kinds()) {
    if (eventType === 'auth.verify' && result === 'allowed') loggedIn.add(agentName);
  }
  const items = agents
    .filter(({ name }) => !loggedIn.has(name))
    .sort((a, b) => a.registeredAt - b.registeredAt)
    .slice(0, MAX_ITEMS)
    .map(({ name, registeredAt }): AttentionItem => {
      const days = Math.floor((clock.now() - registeredAt) / DAY_MS);
      const text = `Registered ${days === 1 ? 'a day' : `${days} days`} ago and never logged in. Check that the agent has its key, or deregister it.`;
      return { kind: 'agent_never_logged_in', subject: `agent:${name}`, text, count: null, since: registeredAt };
    });
  return { items, isComplete: true };
}

export async function examinePolicies(vault: AttentionVault): Promise<AttentionPart> {
  const timer = startTimer();
  const items: AttentionItem[] = [];
  let isComplete = true;
  for (const policy of vault.ledger.memory.control.policies.all()) {
    if (items.length >= MAX_ITEMS || timer.isUp()) {
      isComplete = false;
      break;
    }
    const text = await lackOf(vault, policy);
    if (text === null) continue;
    const { name, createdAt } = policy;
    items.push({ kind: 'policy_grants_nothing', subject: `policy:${name}`, text, count: null, since: createdAt });
  }
  return { items, isComplete };
}

/** Why the policy grants nothing now; null if it grants something. */
async function lackOf({ ledger, store }: AttentionVault, policy: Policy): Promise<string | null> {
  await yieldToEventLoop();
  if (!ledger.memory.control.hasNamed(policy.principal)) {
    return `It names ${policy.principal}, which does not exist. Register the agent, or delete the policy.`;
  }
  // A new credential can be stored anywhere.
  if (policy.actions.includes('store')) return null;
  const query = { ranges: toRanges(policy.resources), type: null };
  const source = {
    count: (from: typeof FIRST_CREDENTIAL, atMost: number) =>
      store.run(countCredentials(store.dialect, query, from, atMost)),
  };
  const { count } = await countFrom(FIRST_CREDENTIAL, source, 1);
  return count > 0 ? null : 'No credential matches its resources. Store one there, or correct the resources.';
}
