// Edits of the database outside Leasehold: values that do not decrypt, rows that are not used.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CredentialType, PolicyName } from '../../src/core/names.ts';
import { ALL_PATHS } from '../../src/core/pattern.ts';
import { hashToken } from '../../src/crypto/tokens.ts';
import { FIRST_CREDENTIAL, listCredentials } from '../../src/store/credential-lists.ts';
import { countLeases, NEWEST_LEASE } from '../../src/store/lease-lists.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import { remove } from '../../src/vault/credentials/credential-operations.ts';
import {
  readCredentialMetadata,
  retrieveCredential,
  storeCredential,
} from '../../src/vault/credentials/credentials.ts';
import { revokeLeases } from '../../src/vault/leases/leases.ts';
import { createPolicy, readPolicy } from '../../src/vault/policies/endpoints.ts';
import { Policy } from '../../src/vault/policies/policy.ts';
import { executeSql } from '../kit/direct-db.ts';
import { alterNewestAt, bytes, concatBytes, idAt, newestValueAt, removeNewestAt } from '../kit/encrypted-values.ts';
import { as, enrol, logIn, newAgentKey, unchecked } from './agents-fixture.ts';
import {
  admin,
  CONNECTED,
  get,
  type OpenedVault,
  openVault,
  outcomeOf,
  put,
  readLog,
  toPath,
  verify,
} from './fixture.ts';

const rowOf = (path: string, version: number): string => `credential_id = ${idAt(path)} AND version = ${version}`;
const storedValue = (path: string, version: 1): string =>
  `(SELECT sealed FROM credential_versions WHERE ${rowOf(path, version)})`;
const alterFirst = (assignment: string): string =>
  `UPDATE credential_versions SET ${assignment} WHERE ${rowOf('prod/key', 1)}`;
const alterNewest = (toValue: (column: string) => string): string => alterNewestAt('prod/key', toValue);

const anotherEnd = (column: string, length: number): string =>
  concatBytes(
    `substr(${column}, 1, ${length - 1})`,
    `CASE substr(${column}, ${length}) WHEN ${bytes('00')} THEN ${bytes('01')} ELSE ${bytes('00')} END`,
  );

/** `version` is the requested one: null for the newest, which is 2. */
const UNREADABLE: readonly (readonly [what: string, sql: string, version: number | null])[] = [
  ['a byte of it is altered', alterNewest((column) => anotherEnd(column, 39)), null],
  ['its last byte is cut off', alterNewest((column) => `substr(${column}, 1, 38)`), null],
  ['nothing of it is left', alterNewest(() => bytes('')), null],
  ['it is another credential’s', alterNewest(() => newestValueAt('prod/other')), null],
  ['it is an earlier version’s', alterNewest(() => storedValue('prod/key', 1)), null],
  ['it is a later version’s', alterFirst(`sealed = ${newestValueAt('prod/key')}`), 1],
  ['an older one is altered', alterFirst(`sealed = ${anotherEnd('sealed', 38)}`), 1],
  ['its credential has another type', "UPDATE credentials SET type = 'api_key' WHERE path = 'prod/key'", null],
  ['its version has another type', alterFirst("type = 'api_key'"), 1],
  [
    'the path leads to another credential',
    `UPDATE credentials SET path = 'x' WHERE path = 'prod/key';
     UPDATE credentials SET path = 'prod/key' WHERE path = 'prod/other'`,
    null,
  ],
  [
    'the version is another credential’s',
    `DELETE FROM credential_versions WHERE ${rowOf('prod/key', 1)};
     UPDATE credential_versions SET credential_id = ${idAt('prod/key')} WHERE ${rowOf('prod/other', 1)}`,
    1,
  ],
];

async function vaultWithValues(t: Parameters<typeof openVault>[0]): Promise<OpenedVault> {
  const vault = await openVault(t);
  for (const path of ['prod/key', 'prod/other']) {
    for (const [value, type] of [
      ['first', 'password'],
      ['second', 'token'],
    ] as const) {
      const request = { path: toPath(path), value: new Secret(value), type: type as CredentialType };
      await storeCredential(vault, admin(), { ...request, description: null, onlyIfNew: false });
    }
  }
  await put(vault, 'neighbour', 'fine');
  return vault;
}

for (const [what, sql, version] of UNREADABLE) {
  test(`a stored value that does not authenticate is an error in the log, no lease and no access: ${what}`, async (t) => {
    const vault = await vaultWithValues(t);
    await executeSql(vault.directory, sql);
    const before = await readLog(vault.real);
    const [neighbour, error, another] = await Promise.allSettled([
      get(vault, 'neighbour'),
      retrieveCredential(vault, admin('unreadable'), { path: toPath('prod/key'), version, ttlSeconds: null }),
      get(vault, 'neighbour'),
    ]);
    assert.deepEqual(
      [neighbour, another].map((each) => each?.status === 'fulfilled' && each.value),
      ['fine', 'fine'],
    );
    assert.equal(error?.status, 'rejected');
    assert.equal(error.reason.code, 'INTEGRITY_FAILURE');
    assert.doesNotMatch(error.reason.message, /first|second/);

    const entries = (await readLog(vault.real)).slice(before.length);
    const own = entries.filter((entry) => entry.request_id === 'unreadable');
    assert.deepEqual(
      own.map((entry) => [entry.event_type, entry.resource, entry.result, entry.policy_name, entry.lease_id]),
      [['credential.retrieve', 'prod/key', 'error', 'builtin:admin', null]],
    );
    assert.equal(entries.length, 3);
    const leases = { agentId: null, agentName: null, path: null, status: null, now: vault.clock.now() };
    assert.equal((await vault.real.run(countLeases(vault.real.dialect, leases, NEWEST_LEASE, 10))).count, 2);
    assert.equal(await accessesOf(vault, 'prod/key'), 0);
    assert.equal((await verify(vault)).isValid, true);
  });
}

/** The rows as the list shows them, which includes rows that do not authenticate. */
async function accessesOf({ real }: OpenedVault, path: string): Promise<number | undefined> {
  const { rows } = await real.run(
    listCredentials(real.dialect, { ranges: ALL_PATHS, type: null }, FIRST_CREDENTIAL, 100),
  );
  return rows.find((row) => row.path === path)?.accessCount;
}

const alterRow = (assignment: string): string => `UPDATE credentials SET ${assignment} WHERE path = 'prod/key'`;
const ALTERED_CREDENTIALS: readonly (readonly [what: string, sql: string])[] = [
  ['its version is rolled back', alterRow('version = 1')],
  ['its version is set forward', alterRow('version = 3')],
  ['another type', alterRow("type = 'password'")],
  ['another description', alterRow("description = 'x'")],
  ['another time of its first version', alterRow('created_at = created_at + 1')],
  ['another time of its newest version', alterRow('updated_at = updated_at + 1')],
  ['another id', alterRow("id = 'x'")],
  [
    'another credential’s row',
    "DELETE FROM credentials WHERE path = 'prod/key'; UPDATE credentials SET path = 'prod/key' WHERE path = 'prod/other'",
  ],
  ['the MAC of another', alterRow("mac = (SELECT mac FROM credentials WHERE path = 'prod/other')")],
  ['no MAC', alterRow("mac = ''")],
];

for (const [what, sql] of ALTERED_CREDENTIALS) {
  test(`a credential whose row was altered can neither be retrieved nor stored, but can be deleted: ${what}`, async (t) => {
    const vault = await vaultWithValues(t);
    const path = toPath('prod/key');
    // Also where the row was found authentic before.
    for (let times = 0; times < 8; times++) assert.equal(await get(vault, 'prod/key'), 'second');
    await executeSql(vault.directory, sql);
    const before = (await readLog(vault.real)).length;
    const retrieval = (version: number | null) =>
      outcomeOf(retrieveCredential(vault, admin(), { path, version, ttlSeconds: null }));
    assert.deepEqual(
      await Promise.all([retrieval(null), retrieval(1), retrieval(2), outcomeOf(get(vault, 'neighbour'))]),
      [...Array<string>(3).fill('INTEGRITY_FAILURE'), 'ok'],
    );
    assert.equal(await outcomeOf(readCredentialMetadata(vault, admin(), path)), 'INTEGRITY_FAILURE');
    assert.equal(await outcomeOf(put(vault, 'prod/key', 'third')), 'INTEGRITY_FAILURE');
    assert.equal(
      await outcomeOf(revokeLeases(vault, admin(), { agentName: null, path }, CONNECTED)),
      'INTEGRITY_FAILURE',
    );
    const entries = (await readLog(vault.real)).slice(before).filter(({ resource }) => resource === 'prod/key');
    assert.deepEqual(new Set(entries.map(({ result }) => result)), new Set(['error']));
    assert.equal(entries.length, 6);
    assert.match(entries[0]?.reason ?? '', /row does not authenticate/);
    await vault.ledger.submit(remove(admin(), path));
    await put(vault, 'prod/key', 'again');
    assert.equal(await get(vault, 'prod/key'), 'again');
    assert.deepEqual([(await verify(vault)).isValid, vault.failures], [true, []]);
  });
}

test('a caller without a grant gets the same denial for a credential whose row was altered', async (t) => {
  const vault = await vaultWithValues(t);
  const key = newAgentKey();
  await enrol(vault, 'ci', key);
  const caller = await as(vault, (await logIn(vault, 'ci', key)).token.reveal());
  await executeSql(vault.directory, alterRow('version = 1'));
  assert.equal(await outcomeOf(get(vault, 'prod/key', caller)), 'ACCESS_DENIED');
});

const POLICY = { principal: 'agent:ci', resources: ['prod/*'], actions: ['retrieve'], max_ttl: 60 };

const ALTERED_POLICIES: readonly (readonly [what: string, sql: string])[] = [
  ['a longer TTL', "UPDATE policies SET max_ttl_seconds = 31536000 WHERE name = 'narrow'"],
  ['another principal', "UPDATE policies SET principal = 'agent:*' WHERE name = 'narrow'"],
  ['wider patterns', `UPDATE policies SET resources = '["*"]' WHERE name = 'narrow'`],
  ['patterns that are not a list', "UPDATE policies SET resources = '{' WHERE name = 'narrow'"],
  ['more actions', `UPDATE policies SET actions = '["retrieve","delete"]' WHERE name = 'narrow'`],
  ['another name', "UPDATE policies SET name = 'narrower' WHERE name = 'narrow'"],
  [
    'the MAC of another',
    "UPDATE policies SET mac = (SELECT mac FROM policies WHERE name = 'other') WHERE name = 'narrow'",
  ],
  ['no MAC', "UPDATE policies SET mac = '' WHERE name = 'narrow'"],
];

for (const [what, sql] of ALTERED_POLICIES) {
  test(`an altered policy grants nothing, is reported at start, and can be created again: ${what}`, async (t) => {
    const vault = await openVault(t);
    const key = newAgentKey();
    await enrol(vault, 'ci', key);
    await put(vault, 'prod/key', 'v');
    await vault.ledger.submit(createPolicy.operation(admin(), Policy.parse({ ...POLICY, name: 'narrow' })));
    await vault.ledger.submit(
      createPolicy.operation(admin(), Policy.parse({ ...POLICY, name: 'other', resources: ['other/*'] })),
    );
    const token = (await logIn(vault, 'ci', key)).token.reveal();
    assert.equal(await get(vault, 'prod/key', await as(vault, token)), 'v');
    await executeSql(vault.directory, sql);

    const again = await openVault(t, { directory: vault.directory });
    const { warnings } = again.ledger.memory;
    assert.equal(warnings.length, 1);
    assert.match(warnings[0] ?? '', /^\d rows? of agents, operators or policies .+\.$/);
    assert.equal(await outcomeOf(get(again, 'prod/key', await as(again, token))), 'ACCESS_DENIED');
    assert.equal(
      await outcomeOf(again.ledger.submit(readPolicy.operation(admin(), 'narrow' as PolicyName))),
      'NOT_FOUND',
    );
    assert.equal((await again.ledger.submit(readPolicy.operation(admin(), 'other' as PolicyName))).name, 'other');
    await again.ledger.submit(createPolicy.operation(admin(), Policy.parse({ ...POLICY, name: 'narrow' })));
    assert.equal(await get(again, 'prod/key', await as(again, token)), 'v');
  });
}

const OWN_KEY = newAgentKey();
const ALTERED_AGENTS: readonly (readonly [what: string, sql: string])[] = [
  ['another public key', `UPDATE agents SET public_key = '${OWN_KEY.publicKey}' WHERE name = 'ci'`],
  ['another name', "UPDATE agents SET name = 'root' WHERE name = 'ci'"],
  ['another id', "UPDATE agents SET id = 'x' WHERE name = 'ci'"],
  ['an earlier registration', "UPDATE agents SET registered_at = 0 WHERE name = 'ci'"],
];

for (const [what, sql] of ALTERED_AGENTS) {
  test(`an altered agent is unknown and can be registered again: ${what}`, async (t) => {
    const vault = await openVault(t);
    const key = newAgentKey();
    await enrol(vault, 'ci', key);
    await enrol(vault, 'other', key);
    const token = (await logIn(vault, 'ci', key)).token.reveal();
    await executeSql(vault.directory, sql);

    const again = await openVault(t, { directory: vault.directory });
    assert.match(again.ledger.memory.warnings.join('\n'), /^\d rows? of agents, operators or policies .+\.$/);
    for (const name of ['ci', 'root']) {
      for (const privateKey of [key.privateKey, OWN_KEY.privateKey]) {
        assert.equal(await outcomeOf(logIn(again, name, { privateKey })), 'AUTH_FAILED');
      }
    }
    assert.equal(await outcomeOf(as(again, token)), 'UNAUTHENTICATED');
    assert.equal(await outcomeOf(logIn(again, 'other', key)), 'ok');
    await enrol(again, 'ci', key);
    assert.equal(await outcomeOf(logIn(again, 'ci', key)), 'ok');
    assert.equal(await outcomeOf(as(again, token)), 'UNAUTHENTICATED');
  });
}

const ALTERED_SESSIONS: readonly (readonly [what: string, sql: string])[] = [
  ['a later end', 'UPDATE sessions SET expires_at = expires_at + 1'],
  ['an earlier beginning', 'UPDATE sessions SET issued_at = issued_at - 1'],
  ['another agent', "UPDATE sessions SET agent_id = (SELECT id FROM agents WHERE name = 'other')"],
  ['another token', `UPDATE sessions SET token_hash = '${hashToken('lhs_forged')}'`],
  ['no MAC', "UPDATE sessions SET mac = ''"],
];

test('an altered session is invalid', async (t) => {
  const vault = await openVault(t);
  const key = newAgentKey();
  await enrol(vault, 'ci', key);
  await enrol(vault, 'other', newAgentKey());
  for (const [what, sql] of ALTERED_SESSIONS) {
    const token = (await logIn(vault, 'ci', key)).token.reveal();
    await executeSql(vault.directory, sql);
    for (const shown of [token, 'lhs_forged']) {
      assert.equal(await outcomeOf(as(vault, shown)), 'UNAUTHENTICATED', what);
      // Nor when the session check inside the batch decides.
      assert.equal(await outcomeOf(get(vault, 'prod/key', unchecked(shown, 'ci'))), 'UNAUTHENTICATED', what);
    }
    await executeSql(vault.directory, 'DELETE FROM sessions');
  }
});

test('a removed newest value is a recorded integrity failure; earlier kept versions can still be retrieved', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'prod/key', 'one');
  await put(vault, 'prod/key', 'two');
  await executeSql(vault.directory, removeNewestAt('prod/key'));
  assert.equal(await outcomeOf(get(vault, 'prod/key')), 'INTEGRITY_FAILURE');
  const last = (await readLog(vault.real)).at(-1);
  assert.deepEqual([last?.result, last?.lease_id], ['error', null]);
  const first = { path: toPath('prod/key'), version: 1, ttlSeconds: null };
  assert.equal((await retrieveCredential(vault, admin(), first)).value.reveal(), 'one');
});

test('a large newest value is stored with the older ones, and its alteration or removal is detected', async (t) => {
  const vault = await openVault(t);
  const large = 'x'.repeat(5000);
  await put(vault, 'prod/key', 'one');
  await put(vault, 'prod/key', large);
  assert.equal(await get(vault, 'prod/key'), large);
  await executeSql(
    vault.directory,
    `UPDATE credential_versions SET sealed = substr(sealed, 1, 4000) WHERE ${rowOf('prod/key', 2)}`,
  );
  assert.equal(await outcomeOf(get(vault, 'prod/key')), 'INTEGRITY_FAILURE');
  await executeSql(vault.directory, `DELETE FROM credential_versions WHERE ${rowOf('prod/key', 2)}`);
  assert.equal(await outcomeOf(get(vault, 'prod/key')), 'INTEGRITY_FAILURE');
  await put(vault, 'prod/key', 'three');
  assert.equal(await get(vault, 'prod/key'), 'three');
});
