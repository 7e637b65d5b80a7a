// What fixtures are made of, each computed from its number alone, so that the load generator can name a million of them without
// being told: paths, agents, their keys and their sessions' tokens. Nothing here touches a store.

import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import type { PublicKey } from '../src/core/agent.ts';
import type { AgentName } from '../src/core/names.ts';
import type { CredentialPath } from '../src/core/path.ts';
import { type PolicyDraft, parsePolicy } from '../src/core/policy.ts';

const TEAMS = 20;
const FIRST_TEAM = 10;
/** What stands before the 32 bytes of a private key in PKCS#8, and of a public one in an SPKI. SOURCE: RFC 8410. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const SPKI_PREFIX_BYTES = 12;

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

function benchFolder(index: number): string {
  return `bench/team-${FIRST_TEAM + (index % TEAMS)}/service-${index}`;
}

export function benchPath(index: number): CredentialPath {
  return `${benchFolder(index)}/api-key` as CredentialPath;
}

export function benchAgent(index: number): AgentName {
  return `bench-${index}` as AgentName;
}

/** A token as a login would give it; a fixture puts the session with its hash into the store. */
export function benchToken(index: number): string {
  return `lhs_${digest(`token ${index}`).toString('base64url')}`;
}

export function benchKey(index: number): KeyObject {
  const der = Buffer.concat([PKCS8_PREFIX, digest(`key ${index}`)]);
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
}

export function benchPublicKey(index: number): PublicKey {
  const der = createPublicKey(benchKey(index)).export({ type: 'spki', format: 'der' });
  return der.subarray(SPKI_PREFIX_BYTES).toString('base64') as PublicKey;
}

/**
 * The first grants the bench's agents everything. Of the others every second one names them too, with prefixes of its own; the
 * rest name agents that are not there. However few, their patterns are as long as those of many: a decision looks for the
 * lengths that are in use.
 */
export function benchPolicy(index: number): PolicyDraft {
  const prefixes = [100 + (index % 900), 100_000 + ((index * 89) % 900_000)].map(
    (number) => `${benchFolder(number)}/*`,
  );
  const resources = index === 0 ? ['bench/*', ...prefixes] : prefixes;
  const principal = index % 2 === 0 ? 'agent:bench-*' : `agent:other-${index}`;
  return parsePolicy({ name: `bench-${index}`, principal, resources, actions: ['retrieve'], maxTtlSeconds: 3600 });
}

export function randomBelow(count: number): number {
  return Math.floor(Math.random() * count);
}
