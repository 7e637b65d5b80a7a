/** Races between a deletion on one node and the use of the deleted resource on other nodes. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import type { Call } from '../kit/keep-alive.ts';

/** The data of one lane of races. */
export interface Lane {
  readonly name: string;
  readonly path: string;
  readonly adminToken: string;
  /** One per node. */
  readonly calls: readonly Call[];
  readonly key: KeyObject;
  readonly publicKey: string;
  token: string;
}

/** A kind of race: sets up what will be deleted, deletes it, and uses it. */
export interface Race {
  readonly what: string;
  /** Creates it again. */
  prepare(lane: Lane, node: Call): Promise<void>;
  delete(lane: Lane, node: Call): Promise<number>;
  /** Resolves to the status. */
  use(lane: Lane, node: Call): Promise<number>;
}

export function newLane(name: string, adminToken: string, calls: readonly Call[]): Lane {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const raw = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('base64');
  return { name, path: `races/${name}`, adminToken, calls, key: privateKey, publicKey: raw, token: '' };
}

async function expect(status: number, told: ReturnType<Call>): Promise<string> {
  const { status: got, text } = await told;
  assert.equal(got, status, text);
  return text;
}

export async function register(lane: Lane, node: Call): Promise<void> {
  await expect(201, node('POST', '/api/v1/agents', lane.adminToken, { name: lane.name, public_key: lane.publicKey }));
}

export async function logIn(lane: Lane, challenger: Call, verifier: Call): Promise<void> {
  const challenge = await expect(200, challenger('POST', '/auth/challenge', null, { agent_name: lane.name }));
  const { challenge_id, nonce } = JSON.parse(challenge).data;
  const signature = sign(null, Buffer.from(nonce, 'base64'), lane.key).toString('base64');
  const body = { challenge_id, agent_name: lane.name, signature };
  lane.token = JSON.parse(await expect(200, verifier('POST', '/auth/verify', null, body))).data.session_id;
}

const policyOf = (lane: Lane) => ({
  name: lane.name,
  principal: `agent:${lane.name}`,
  resources: [lane.path],
  actions: ['retrieve'],
});

export async function grant(lane: Lane, node: Call): Promise<void> {
  const { name, ...policy } = policyOf(lane);
  await expect(200, node('PUT', `/api/v1/policies/${name}`, lane.adminToken, policy));
}

const retrieve = async (lane: Lane, node: Call): Promise<number> =>
  (await node('GET', `/api/v1/credentials/${lane.path}`, lane.token)).status;

const remove = async (node: Call, path: string, token: string): Promise<number> =>
  (await node('DELETE', path, token)).status;

const POLICY: Race = {
  what: 'a policy',
  prepare: grant,
  delete: (lane, node) => remove(node, `/api/v1/policies/${lane.name}`, lane.adminToken),
  use: retrieve,
};

const SESSION: Race = {
  what: 'a session',
  prepare: (lane, node) => logIn(lane, node, lane.calls[0] ?? node),
  delete: (lane, node) => remove(node, '/auth/session', lane.token),
  use: retrieve,
};

const AGENT: Race = {
  what: 'an agent',
  async prepare(lane, node) {
    await register(lane, node);
    await logIn(lane, lane.calls[1] ?? node, node);
  },
  delete: (lane, node) => remove(node, `/api/v1/agents/${lane.name}`, lane.adminToken),
  use: retrieve,
};

/** The lease that a lane races for. */
const leases = new WeakMap<Lane, string>();
const LEASE: Race = {
  what: 'a lease',
  async prepare(lane, node) {
    const text = await expect(200, node('GET', `/api/v1/credentials/${lane.path}`, lane.token));
    leases.set(lane, JSON.parse(text).data.lease_id);
  },
  delete: (lane, node) => remove(node, `/api/v1/leases/${leases.get(lane)}`, lane.token),
  use: async (lane, node) => (await node('POST', `/api/v1/leases/${leases.get(lane)}/renew`, lane.token)).status,
};

export const RACES: readonly Race[] = [POLICY, SESSION, AGENT, LEASE];

/** The statuses of uses that began after the response to the deletion, and how many concurrent uses succeeded. */
export interface Run {
  readonly late: readonly number[];
  readonly concurrent: number;
}

/** One race: `deleter` deletes while the other nodes use it; then each node uses it once more. */
export async function run(race: Race, lane: Lane, deleter: number, preparer: number): Promise<Run> {
  const at = (node: number): Call => {
    const call = lane.calls[node % lane.calls.length];
    assert.ok(call);
    return call;
  };
  await race.prepare(lane, at(preparer));
  const others = lane.calls.map((_, node) => node).filter((node) => node !== deleter);
  const concurrent = others.map((node) => race.use(lane, at(node)));
  assert.equal(await race.delete(lane, at(deleter)), 204);
  const late = await Promise.all(lane.calls.map((call) => race.use(lane, call)));
  const came = (await Promise.all(concurrent)).filter((status) => status === 200).length;
  return { late, concurrent: came };
}
