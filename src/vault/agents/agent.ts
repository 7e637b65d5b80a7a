/** Agents: the programs that use credentials. SOURCE: docs/api.md, "Agents". */
import * as grammar from '../../core/grammars.ts';
import type { AgentId, PublicKey } from '../../core/names.ts';
import { list } from '../../engine/compounds.ts';
import { byDefault, internal, nullable, optional, setByServer, type ValueOf } from '../../engine/field.ts';
import { integer, text, time } from '../../engine/kinds.ts';
import { type DraftOf, resource, shape } from '../../engine/resource.ts';
import type { Operator } from '../operators/operator.ts';

const formerKeyUntil = nullable(time({ wire: 'former_key_until' }));

/** The only list of an agent's fields. */
export const Agent = resource('agent', {
  table: 'agents',
  id: 'id',
  key: 'name',
  isHeld: true,
  // WHY the name and not the id: an agent that is registered again replaces what the audit log says about the previous
  // one, as its row does.
  subject: { fields: ['name'], isCaseless: true },
  fields: {
    /** Immutable: an agent registered again under the same name receives a new id and inherits nothing. */
    id: internal(text(grammar.id<AgentId>())),
    name: text(grammar.agentName),
    description: byDefault('', text(grammar.description)),
    publicKey: text(grammar.publicKey, { wire: 'public_key' }),
    registeredAt: setByServer(time({ wire: 'registered_at' })),
    /** Sessions that began at this time or earlier have ended; null if none was ended this way. */
    sessionsEndedAt: internal(nullable(time())),
    /** The key before the last rotation, with which logins succeed until `formerKeyUntil`. */
    formerPublicKey: internal(nullable(text(grammar.publicKey))),
    formerKeyUntil: internal(formerKeyUntil),
    /** The callers that registered it or gave it a key. */
    registeredBy: internal(list(text(grammar.actorName), { min: 0 })),
  },
});
export type Agent = ValueOf<typeof Agent.fields>;

const { name, description, publicKey, registeredAt } = Agent.fields;

/** The public key in a request; null if the server generates a key pair. The vault checks whether the key is usable. */
const givenKey = optional(
  text<string, 'public_key'>(grammar.publicKey, {
    wire: 'public_key',
    description: 'By default the server generates a key pair.',
  }),
);

export const Registration = shape('AgentRequest', { name, description, publicKey: givenKey });
export type Registration = DraftOf<typeof Registration.fields>;
export const RegisteredAgent = shape('RegisteredAgent', { name, publicKey, registeredAt });

export const MAX_GRACE_SECONDS = 7 * 24 * 3600;
const DEFAULT_GRACE_SECONDS = 300;

export const Rotation = shape('AgentRotation', {
  publicKey: givenKey,
  /** The time for which logins with the previous key succeed; its sessions stay. */
  graceSeconds: byDefault(
    DEFAULT_GRACE_SECONDS,
    integer(
      { min: 0, max: MAX_GRACE_SECONDS },
      { wire: 'grace_seconds', description: 'For how long logins with the previous key succeed; 300 by default.' },
    ),
  ),
});
export type Rotation = DraftOf<typeof Rotation.fields>;
export const RotatedAgent = shape('RotatedAgent', { name, publicKey, formerKeyUntil });

export function hasKey(
  agent: Partial<Pick<Agent, 'formerPublicKey' | 'formerKeyUntil'>> & Pick<Operator, 'publicKey'>,
  publicKey: PublicKey,
  now: number,
): boolean {
  if (agent.publicKey === publicKey) return true;
  return agent.formerPublicKey === publicKey && now < (agent.formerKeyUntil ?? 0);
}
