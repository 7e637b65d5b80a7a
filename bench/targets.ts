// Paths, agents, keys and tokens of the fixtures, each computed from its number alone, so that the load generator can
// name a million of them. Nothing here touches a store.

import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import type { AgentName, PublicKey } from '../src/core/names.ts';
import type { CredentialPath } from '../src/core/path.ts';
import { Policy, type PolicyDraft } from '../src/vault/policies/policy.ts';
import type { Target } from './types.ts';

export const VALUE = 'sk-0123456789abcdef0123456789abcdef01234567';

const TEAMS = 20;
const FIRST_TEAM = 10;
/** The bytes before the 32 of a private key in PKCS#8, and of a public key in SPKI. SOURCE: RFC 8410. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const SPKI_PREFIX_BYTES = 12;
const MAX_SAMPLES = 32_000;

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

function benchDirectory(index: number): string {
  return `bench/team-${FIRST_TEAM + (index % TEAMS)}/service-${index}`;
}

export function benchPath(index: number): CredentialPath {
  return `${benchDirectory(index)}/api-key` as CredentialPath;
}

export function benchAgent(index: number): AgentName {
  return `bench-${index}` as AgentName;
}

/** A session token; a fixture writes the session with its hash. */
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
 * The first policy grants the bench's agents everything. Of the others every second one names them too, with other
 * prefixes; the rest name agents that do not exist. The patterns of few policies are as long as those of many, because
 * the cost of a decision depends on the number of different lengths.
 */
export function benchPolicy(index: number): PolicyDraft {
  const prefixes = [100 + (index % 900), 100_000 + ((index * 89) % 900_000)].map(
    (number) => `${benchDirectory(number)}/*`,
  );
  const resources = index === 0 ? ['bench/*', ...prefixes] : prefixes;
  const principal = index % 2 === 0 ? 'agent:bench-*' : `agent:other-${index}`;
  return Policy.parse({ name: `bench-${index}`, principal, resources, actions: ['retrieve'], max_ttl: 3600 });
}

export function randomBelow(count: number): number {
  return Math.floor(Math.random() * count);
}

/** Random retrievals, repeated after 32,000. */
export function sampleRetrievals({ credentials, agents }: Target, amount: number): { path: string; token: string }[] {
  const tokens = Array.from({ length: agents }, (_, index) => benchToken(index));
  return Array.from({ length: Math.min(amount, MAX_SAMPLES) }, () => ({
    path: `/api/v1/credentials/${benchPath(randomBelow(credentials))}`,
    token: tokens[randomBelow(agents)] ?? '',
  }));
}
