/** The role that a route requires, which is checked before the body is read. SOURCE: docs/decisions.md, "Requests". */
import type { FastifyRequest } from 'fastify';
import type { Authentication } from '../core/agent.ts';
import type { EventType } from '../core/audit.ts';
import { ApiError } from '../core/errors.ts';
import { parseSlotName } from '../core/keyset.ts';
import { parseAgentName, parseOperatorName, parsePolicyName } from '../core/names.ts';
import type { Context } from '../core/operation.ts';
import { requireAdmin } from '../core/operations/admin-read.ts';
import { hasRole, roleFor } from '../core/operator.ts';
import type { Vault } from '../vault/vault.ts';
import { addressOf } from './register-routes.ts';

/**
 * Rejects an agent, and an operator without the role, at a route of the administrator before the body is read, and
 * records the denial. WHY operators too, although each operation checks the role: the work of some routes precedes it.
 */
export function checkRole(vault: Vault, request: FastifyRequest, done: (error?: Error) => void): void {
  const { authentication, id: requestId } = request;
  const { adminEvent } = request.routeOptions.config;
  if (authentication === null) throw new Error('a guarded route was reached without a caller');
  if (authentication.kind === 'admin' && vault.breakGlass.isDue()) {
    const recorded = vault.breakGlass.record({ authentication, requestId, remoteAddr: addressOf(request) });
    // WHY in any case: who locks has a reason that does not wait until the storage works again.
    recorded.then(() => done(), adminEvent === 'service.lock' ? () => done() : done);
    return;
  }
  if (adminEvent === undefined || authentication.kind === 'admin' || mayBeAllowed(vault, authentication, adminEvent)) {
    done();
    return;
  }
  const { name } = request.params as Record<string, string>;
  const context: Context = { authentication, requestId, remoteAddr: addressOf(request) };
  const resource = resourceOf(adminEvent, name);
  vault.ledger.submit(requireAdmin(context, adminEvent, resource)).then(() => done(), done);
}

/** Whether the operator may have the role, as far as this node knows. The operation decides. */
function mayBeAllowed({ ledger }: Vault, authentication: Authentication, event: EventType): boolean {
  if (authentication.kind !== 'operator') return false;
  const operator = ledger.memory.control.operatorByName(authentication.agentName);
  // The panic about one agent has an event that needs a lesser role.
  const needed = roleFor(event === 'service.panic' ? 'agent.panic' : event);
  return operator !== null && hasRole(operator, needed);
}

/** The resource as the operation names it; `*` if the path has no name or an invalid one. */
function resourceOf(event: EventType, name: string | undefined): string {
  const [kind] = event.split('.');
  if (name === undefined) return '*';
  try {
    if (kind === 'key') return `key:slot:${parseSlotName(name)}`;
    if (kind === 'operator') return parseOperatorName(name);
    return `${kind}:${kind === 'agent' ? parseAgentName(name) : parsePolicyName(name)}`;
  } catch (error) {
    if (error instanceof ApiError) return '*';
    throw error;
  }
}
