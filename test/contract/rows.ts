/** Rows for the contract of the store, and functions that write them. */

import assert from 'node:assert/strict';
import type { ReadSet } from '../../src/core/batch-state.ts';
import type { IdempotencyId, IdempotencyRecord } from '../../src/core/idempotency.ts';
import type {
  ActorName,
  AgentId,
  AgentName,
  ChallengeId,
  CredentialId,
  CredentialType,
  LeaseId,
  OperatorName,
  PolicyName,
  PublicKey,
  TokenHash,
} from '../../src/core/names.ts';
import type { CredentialPath } from '../../src/core/path.ts';
import type { Resource, RowOf } from '../../src/core/resources.ts';
import { readHead } from '../../src/store/audit-log.ts';
import type { Store } from '../../src/store/port.ts';
import type { Authenticated, Head, LoadedFromStore, StoredChange, WriteSet } from '../../src/store/stored-data.ts';
import type { Agent } from '../../src/vault/agents/agent.ts';
import type { Approval, ApprovalId, ApprovalKey } from '../../src/vault/approvals/approval.ts';
import type { AuditEntry } from '../../src/vault/audit/audit-entry.ts';
import type { Credential, CredentialVersion } from '../../src/vault/credentials/credential.ts';
import type { InitialKeys, SlotId, SlotName, VaultId } from '../../src/vault/keys/keyset.ts';
import type { Lease } from '../../src/vault/leases/lease.ts';
import type { Operator } from '../../src/vault/operators/operator.ts';
import { Policy } from '../../src/vault/policies/policy.ts';
import type { Session } from '../../src/vault/sessions/session.ts';

export const T0 = Date.UTC(2026, 0, 31);
export const KEY_CHECK = Buffer.alloc(32, 7).toString('base64');

const base64 = (text: string): string => Buffer.from(text.padEnd(32, '.')).toString('base64');
export const at = (milliseconds: number): string => new Date(milliseconds).toISOString();
export const asPath = (text: string): CredentialPath => text as CredentialPath;
export const asChallenge = (n: number): ChallengeId =>
  `019d2e92-a3e1-8a2b-9c4d-${String(n).padStart(12, '0')}` as ChallengeId;

export const SLOT = {
  id: 'slot-1' as SlotId,
  name: 'file' as SlotName,
  kind: 'file' as const,
  parameters: { salt: 'c2FsdA==', passes: 3 },
  publicKey: 'a key',
  createdAt: T0,
  rootVersion: 1,
  sealedRoot: new Uint8Array([1, 2, 3]),
  mac: 'a mac',
};

export const KEYS: InitialKeys = {
  vaultId: 'a vault' as VaultId,
  keyset: { version: 1, rootVersion: 1, sealed: new Uint8Array([4, 5, 6]) },
  slots: [SLOT],
};

export const headAt = (seq: number, epoch = 0): Head => ({
  seq,
  hmac: base64(`hmac ${seq}`),
  mac: base64(`mac ${seq} ${epoch}`),
  epoch,
  tree: '',
  control: base64('control'),
});

export const anEntry = (seq: number, fields: Partial<AuditEntry> = {}): AuditEntry => ({
  seq,
  id: `019d2e92-6fc0-7c31-9b5e-${String(seq).padStart(12, '0')}`,
  timestamp: at(T0 + seq),
  event_type: 'credential.retrieve',
  agent_name: 'ci',
  resource: 'prod/key',
  action: 'retrieve',
  result: 'allowed',
  policy_name: null,
  lease_id: null,
  code: null,
  reason: null,
  request_id: null,
  remote_addr: null,
  hmac: base64(`hmac ${seq}`),
  ...fields,
});

export const anAgent = (n: number, fields: Partial<Agent> = {}): Authenticated<Agent> => ({
  id: `agent-${n}` as AgentId,
  name: `ci-${n}` as AgentName,
  description: '',
  publicKey: base64(`key ${n}`) as PublicKey,
  registeredAt: T0 + n,
  sessionsEndedAt: null,
  formerPublicKey: null,
  formerKeyUntil: null,
  registeredBy: [],
  mac: base64(`mac of agent ${n}`),
  ...fields,
});

export const anApproval = (n: number, fields: Partial<Approval> = {}): Authenticated<Approval> => ({
  id: `019d2e92-0a0a-7c31-9b5e-${String(n).padStart(12, '0')}` as ApprovalId,
  nonce: base64(`nonce ${n}`),
  agentId: 'agent-1' as AgentId,
  agentName: 'ci-1' as ActorName,
  tokenHash: base64(`token ${n}`) as TokenHash,
  action: 'use',
  path: asPath('prod/key'),
  key: base64('key') as ApprovalKey,
  basis: base64('basis'),
  terms: {
    each: 'endpoint',
    uses: 3,
    seconds: 60,
    isForSession: true,
    quorum: 2,
    timeoutSeconds: 300,
    policyNames: ['asks' as PolicyName],
  },
  method: 'POST',
  host: 'https://api.example.com',
  targetPath: '/v1/ü "x"',
  purpose: 'a\nreport',
  status: 'pending',
  requestedAt: T0 + n,
  answerBy: T0 + n + 300_000,
  approvers: [{ operatorId: 'operator-1' as AgentId, operator: 'operator:ann' as ActorName, at: T0 + n + 1 }],
  endedBy: null,
  endedAt: null,
  reason: null,
  usesLeft: null,
  grantEndsAt: null,
  expiresAt: T0 + n + 360_000,
  mac: base64(`mac of approval ${n}`),
  ...fields,
});

export const anOperator = (n: number, fields: Partial<Operator> = {}): Authenticated<Operator> => ({
  id: `operator-${n}` as AgentId,
  name: `operator:ann-${n}` as OperatorName,
  description: '',
  roles: ['viewer', 'editor'],
  publicKey: base64(`key of operator ${n}`) as PublicKey,
  passkeys: null,
  identity: null,
  addedAt: T0 + n,
  sessionsEndedAt: null,
  mac: base64(`mac of operator ${n}`),
  ...fields,
});

export const aPolicy = (n: number, fields: Partial<Policy> = {}): Authenticated<Policy> => ({
  ...Policy.parse({ name: `policy-${n}`, principal: 'agent:ci-*', resources: ['prod/*'], actions: ['retrieve'] }),
  createdAt: T0 + n,
  mac: base64(`mac of policy ${n}`),
  ...fields,
});

export const aSession = (n: number, fields: Partial<Session> = {}): Authenticated<Session> => ({
  tokenHash: base64(`token ${n}`) as TokenHash,
  agentId: `agent-${n}` as AgentId,
  issuedAt: T0,
  expiresAt: T0 + 3_600_000,
  endsAt: null,
  mac: base64(`mac of session ${n}`),
  ...fields,
});

export const aReply = (n: number, fields: Partial<IdempotencyRecord> = {}): Authenticated<IdempotencyRecord> => ({
  id: base64(`id ${n}`) as IdempotencyId,
  agentId: `agent-${n}` as AgentId,
  requestMac: base64(`request ${n}`),
  reply: `{"n":${n}}`,
  expiresAt: T0 + 86_400_000 + n,
  mac: base64(`mac of reply ${n}`),
  ...fields,
});

export const aCredential = (path: string, fields: Partial<Credential> = {}): Authenticated<Credential> => ({
  mac: `of ${path}`,
  id: `of ${path}` as CredentialId,
  path: asPath(path),
  type: 'generic' as CredentialType,
  description: '',
  createdAt: T0,
  updatedAt: T0,
  version: 1,
  ...fields,
});

export const aVersion = (version: number): Omit<CredentialVersion, 'content'> => ({
  version,
  type: `type-${version}` as CredentialType,
  createdAt: T0 + version,
});

export const aLease = (seq: number, fields: Partial<Lease> = {}): Lease => ({
  id: `019d2e93-1994-7e10-8a5c-${String(seq).padStart(12, '0')}` as LeaseId,
  agentId: 'agent-1' as AgentId,
  credentialId: 'of prod/key' as CredentialId,
  agentName: 'ci-1' as ActorName,
  path: asPath('prod/key'),
  version: 1,
  policyName: 'policy-1',
  issuedAt: T0 + seq,
  expiresAt: T0 + seq + 300_000,
  revokedAt: null,
  kind: 'retrieve',
  tokenHash: null,
  seq,
  ...fields,
});

export function storedPut<R extends Resource>(resource: R, row: Authenticated<RowOf[R]>): StoredChange {
  return { kind: 'put', resource, row } as unknown as StoredChange;
}
export const stored = (credential: Authenticated<Credential>): StoredChange => storedPut('credential', credential);
export const versioned = (credential: Credential, version: number, sealed: Uint8Array): StoredChange => ({
  kind: 'addVersion',
  credentialId: credential.id,
  version: aVersion(version),
  sealed,
});
export const keptReply = (record: Authenticated<IdempotencyRecord>): StoredChange => storedPut('reply', record);
export const leased = (lease: Lease): StoredChange => ({ kind: 'addLease', lease });
export const marked = (seq: number, agentId: AgentId | null, credentialId: CredentialId | null): StoredChange => ({
  kind: 'revokeMatching',
  revocation: { seq, agentId, credentialId, kind: null, revokedAt: T0 + seq },
});

/** A batch in which the credentials are retrieved, in that order, behind the changes. */
export function retrievals(
  firstSeq: number,
  credentials: readonly Credential[],
  changes: readonly StoredChange[] = [],
): Pick<WriteSet, 'entries' | 'changes' | 'accesses'> {
  const accesses = new Map<CredentialId, number>();
  for (const { id } of credentials) accesses.set(id, (accesses.get(id) ?? 0) + 1);
  return {
    entries: credentials.map(({ path }, index) => anEntry(firstSeq + index, { resource: path })),
    changes: [
      ...changes,
      ...credentials.map(({ id, path }, index) => leased(aLease(firstSeq + index, { credentialId: id, path }))),
    ],
    accesses,
  };
}

/** Commits one batch whose head record names its last entry, or the entry `seq`. */
export async function commit(
  store: Store,
  {
    entries = [],
    treeNodes = [],
    changes = [],
    accesses = new Map(),
    seq,
  }: Partial<Omit<WriteSet, 'head'>> & { readonly seq?: number },
): Promise<void> {
  const { head } = await store.run(readHead());
  const turn = await store.begin([]);
  const batch = { entries, treeNodes, changes, accesses, head: headAt(seq ?? entries.at(-1)?.seq ?? head?.seq ?? 0) };
  await (await turn.commit(batch)).durable;
}

/** Commits this number of entries after the last one, one per batch. */
export async function commitEntries(store: Store, count: number): Promise<void> {
  const { last } = await store.run(readHead());
  for (let seq = (last?.seq ?? 0) + 1; count > 0; seq++, count--) await commit(store, { entries: [anEntry(seq)] });
}

/** The rows that a transaction loads for these keys; the transaction is rolled back. */
/** No order of rows is promised. */
function inOrder(found: LoadedFromStore): readonly (readonly [string, readonly string[]])[] {
  const { rows: byResource, ...others } = found;
  return Object.entries<Iterable<unknown>>({ ...others, ...byResource }).map(([kind, rows]) => [
    kind,
    [...rows].map((row) => JSON.stringify(row)).sort(),
  ]);
}

/** What a transaction finds, and a read without one. */
export async function find(store: Store, keys: readonly ReadSet[]): Promise<LoadedFromStore> {
  const turn = await store.begin(keys);
  await turn.rollback();
  const { found, shared } = await store.load(keys);
  assert.deepEqual(inOrder(found), inOrder(turn.found));
  assert.deepEqual([shared?.head, shared?.last], [turn.shared?.head, turn.shared?.last]);
  return { ...found, leases: found.leases.toSorted((a, b) => a.seq - b.seq) };
}
