/** Maps a command to its operation of `src/core`. */

import { credentialType, policyName } from '../../../src/core/grammars.ts';
import {
  type ActorName,
  type AgentId,
  type PublicKey,
  parseAgentName,
  type TokenHash,
} from '../../../src/core/names.ts';
import { authorize, type Operation } from '../../../src/core/operation.ts';
import { parsePath } from '../../../src/core/path.ts';
import { deregisterAgent, registerAgent } from '../../../src/vault/agents/agent-operations.ts';
import { serviceEvent } from '../../../src/vault/audit/lifecycle.ts';
import { parseValue } from '../../../src/vault/credentials/credential.ts';
import * as credentials from '../../../src/vault/credentials/credential-operations.ts';
import { retrieve } from '../../../src/vault/credentials/retrieve.ts';
import * as leases from '../../../src/vault/leases/lease-operations.ts';
import * as policies from '../../../src/vault/policies/endpoints.ts';
import { Policy, type PolicyDraft, parseTtl } from '../../../src/vault/policies/policy.ts';
import { simulate } from '../../../src/vault/policies/simulate.ts';
import * as sessions from '../../../src/vault/sessions/session-operations.ts';
import { OWN, type PolicyFields } from './commands.ts';
import type { Ask } from './world.ts';

/** Every stored value is unique. */
export const storedBy = (ask: Pick<Ask, 'fresh'>): string => `value of ${ask.fresh}`;
const keyOf = (id: string): PublicKey => `key of ${id}` as PublicKey;

/** The agent of a request about leases: the caller itself if the request names none. */
function holderOf(ask: Ask, agent: string | null): string | null {
  if (agent !== OWN) return agent;
  return ask.auth.kind === 'session' ? ask.auth.agentName : 'admin';
}

function toDraft({ maxTtlSeconds, ...policy }: PolicyFields): PolicyDraft {
  return Policy.parse({ ...policy, max_ttl: maxTtlSeconds });
}

export function toOperation(ask: Ask): Operation<unknown> {
  const { command, auth, fresh } = ask;
  const context = { auth, requestId: `request ${fresh}`, remoteAddr: '192.0.2.1' };
  switch (command.kind) {
    case 'retrieve':
      return retrieve(context, {
        path: parsePath(command.path),
        version: command.version,
        ttlSeconds: command.ttl === null ? null : parseTtl(command.ttl, 'ttl'),
      });
    case 'store':
      return credentials.store(context, {
        path: parsePath(command.path),
        value: parseValue(storedBy(ask)),
        type: command.type === null ? null : credentialType.parse(command.type, 'type'),
        description: command.description,
        onlyIfNew: command.onlyIfNew,
      });
    case 'remove':
      return credentials.remove(context, parsePath(command.path));
    case 'look':
      return credentials.readMetadata(context, parsePath(command.path));
    case 'list':
      return credentials.list(context);
    case 'createPolicy':
      return policies.createPolicy.operation(context, toDraft(command.policy));
    case 'replacePolicy':
      return policies.replacePolicy.operation(context, toDraft(command.policy));
    case 'deletePolicy':
      return policies.deletePolicy.operation(context, policyName.parse(command.name, 'name'));
    case 'readPolicy':
      return policies.readPolicy.operation(context, policyName.parse(command.name, 'name'));
    case 'readAudit':
      return authorize(context, 'audit.list');
    case 'simulate': {
      const { action } = command;
      const question = { agent: parseAgentName(command.agent), path: parsePath(command.path), action, request: null };
      return simulate(context, question);
    }
    case 'register': {
      const { description } = command;
      const name = parseAgentName(command.name);
      return registerAgent(context, { id: fresh as AgentId, name, description, publicKey: keyOf(fresh) });
    }
    case 'deregister':
      return deregisterAgent(context, parseAgentName(command.name));
    case 'verify':
      return sessions.openSession(context, {
        agentName: parseAgentName(command.name),
        challengeId: ask.challenge.id,
        challengeExpiresAt: ask.challenge.expiresAt,
        wasIssuedToAgent: ask.challenge.boundTo !== null,
        verifiedAgainst: ask.checked && { agentId: ask.checked.agentId, publicKey: keyOf(ask.checked.agentId) },
        isSignatureValid: ask.checked?.isValid ?? false,
        tokenHash: fresh as TokenHash,
      });
    case 'readSession':
      return sessions.readSession(context);
    case 'endSession':
      return sessions.endSession(context);
    case 'readLease':
      return leases.readLease(context, ask.lease);
    case 'renew':
      return leases.renewLease(context, ask.lease);
    case 'revoke':
      return leases.revokeLease(context, ask.lease);
    case 'revokeMany': {
      const agentName = holderOf(ask, command.agent) as ActorName | null;
      return leases.revokeLeases(context, { agentName, path: command.path === null ? null : parsePath(command.path) });
    }
    case 'listLeases':
      return leases.listLeases(context);
    case 'start':
      return serviceEvent('service.start', null);
    case 'challenge':
      throw new Error('issuing a challenge is not an operation: it needs no storage and is not recorded');
  }
}
