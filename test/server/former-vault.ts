/** A vault as a version wrote it that had neither key slots nor states in the log, with the schema of this version. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { benchPublicKey } from '../../bench/targets.ts';
import type { Agent, Session } from '../../src/core/agent.ts';
import { GENESIS_MAC } from '../../src/core/audit.ts';
import type { CredentialId, CredentialType } from '../../src/core/names.ts';
import type { Policy } from '../../src/core/policy.ts';
import { Secret } from '../../src/core/secret.ts';
import type { Usage } from '../../src/core/target.ts';
import { entryMac } from '../../src/crypto/chain.ts';
import { deriveKeys } from '../../src/crypto/keys.ts';
import { newId } from '../../src/crypto/random.ts';
import { seal } from '../../src/crypto/sealing.ts';
import { hashToken } from '../../src/crypto/tokens.ts';
import { AUTHENTICATED_ROWS } from '../../src/ledger/authenticated-rows.ts';
import type { Store } from '../../src/store/port.ts';
import type { StoredChange } from '../../src/store/store.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { headWithoutTree } from '../kit/head.ts';
import { keepDatabase, openStore } from '../kit/stores.ts';
import { toPath } from '../vault/fixture.ts';

const ROOT_KEY = new Uint8Array(32).fill(5);
export const formerKeys = deriveKeys(ROOT_KEY);
/** Of a session of the agent `bot`, which may retrieve everything. */
export const FORMER_TOKEN = `lhs_${'A'.repeat(43)}`;
const head = (seq: number, hmac: string) => headWithoutTree(formerKeys.audit, seq, hmac);

export function directoryWithKey(scope: Scope): string {
  const dataDir = join(temporaryDirectory(scope), 'data');
  mkdirSync(dataDir, { mode: 0o700 });
  writeFileSync(join(dataDir, 'root.key'), `${Buffer.from(ROOT_KEY).toString('base64')}\n`, { mode: 0o600 });
  return dataDir;
}

/** An entry and rows of each kind. */
async function fill(store: Store, credentials: number): Promise<void> {
  const now = Date.now();
  const entry = {
    seq: 1,
    id: newId(),
    timestamp: new Date(now).toISOString(),
    event_type: 'service.start',
    agent_name: 'service',
    resource: '*',
    action: 'start',
    result: 'allowed',
    policy_name: null,
    lease_id: null,
    reason: null,
    request_id: null,
    remote_addr: null,
  };
  const hmac = entryMac(formerKeys.audit, GENESIS_MAC, entry);
  const transaction = await store.begin([]);
  const { durable } = await transaction.commit({
    entries: [{ ...entry, hmac }],
    treeNodes: [],
    head: head(1, hmac),
    accesses: new Map(),
    changes: [...agentChanges(now), ...credentialChanges('a/b', now)],
  });
  await durable;
  for (let from = 1; from < credentials; from += STEP_CREDENTIALS) {
    const paths = Array.from(
      { length: Math.min(STEP_CREDENTIALS, credentials - from) },
      (_, at) => `many/${from + at}`,
    );
    const changes = paths.flatMap((path) => credentialChanges(path, now));
    const step = await store.begin([]);
    await (await step.commit({ entries: [], treeNodes: [], head: head(1, hmac), accesses: new Map(), changes }))
      .durable;
  }
}

const STEP_CREDENTIALS = 1000;

function agentChanges(now: number): StoredChange[] {
  const { row } = formerKeys;
  const agent: Agent = {
    id: newId() as Agent['id'],
    name: 'bot' as Agent['name'],
    description: '',
    publicKey: benchPublicKey(0) as Agent['publicKey'],
    registeredAt: now,
    sessionsEndedAt: null,
  };
  const policy: Policy = {
    name: 'bot-all' as Policy['name'],
    principal: 'agent:bot' as Policy['principal'],
    resources: ['*' as Policy['resources'][number]],
    actions: ['retrieve'],
    maxTtlSeconds: 60 as Policy['maxTtlSeconds'],
    limits: null,
    approval: null,
    createdAt: now,
  };
  const session: Session = {
    tokenHash: hashToken(FORMER_TOKEN),
    agentId: agent.id,
    issuedAt: now,
    expiresAt: now + 3_600_000,
  };
  return [
    { kind: 'putAgent', agent: AUTHENTICATED_ROWS.agent.withMac(row, agent) },
    { kind: 'putPolicy', policy: AUTHENTICATED_ROWS.policy.withMac(row, policy) },
    { kind: 'putSession', session: AUTHENTICATED_ROWS.session.withMac(row, session) },
  ];
}

/** With targets; the value is `kept`. */
function credentialChanges(name: string, now: number): StoredChange[] {
  const { row } = formerKeys;
  const [id, path, type] = [newId() as CredentialId, toPath(name), 'generic' as CredentialType];
  const credential = { id, path, type, description: '', createdAt: now, updatedAt: now, version: 1 };
  const usage: Usage = {
    credentialId: id,
    path,
    service: null,
    targets: [],
    placement: { kind: 'bearer' },
    updatedAt: now,
  };
  return [
    { kind: 'putCredential', credential: AUTHENTICATED_ROWS.credential.withMac(row, credential) },
    {
      kind: 'addVersion',
      credentialId: id,
      version: { version: 1, type, createdAt: now },
      sealed: seal(formerKeys, new Secret('kept'), { credentialId: id, path, type, version: 1 }),
    },
    { kind: 'putUsage', usage: AUTHENTICATED_ROWS.usage.withMac(row, usage) },
  ];
}

/** A vault that an earlier version stopped in order, with the schema of this version. */
export async function formerVault(scope: Scope, credentials = 1): Promise<string> {
  const dataDir = directoryWithKey(scope);
  keepDatabase(scope, dataDir);
  const store = await openStore(dataDir);
  await store.initialise(formerKeys.checkValue, head(0, GENESIS_MAC), 0);
  await fill(store, credentials);
  await store.close();
  for (const name of ['vault.created', 'lock']) writeFileSync(join(dataDir, name), '', { mode: 0o600 });
  return dataDir;
}
