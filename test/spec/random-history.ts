/**
 * A random history of a vault: agents, operators, policies, credentials with versions, targets, sessions, approvals,
 * deletions and rotations of keys, on one node or two. Copies of its rows are taken on the way.
 */
import assert from 'node:assert/strict';
import type { Dice } from '../e2e/random.ts';
import { type Client, logIn, readAgentKey } from '../kit/client.ts';
import { askToRetrieve, demandApproval } from '../kit/held.ts';
import { newOperatorKey } from '../kit/operators.ts';
import type { TestService } from '../kit/service.ts';
import { type Rows, readRows } from './raw-rows.ts';

const AGENTS = ['bot-0', 'bot-1', 'bot-2'] as const;
const OPERATORS = ['ann', 'ben'] as const;
const OPERATOR_KEY = newOperatorKey();
const APPROVER = { name: 'approver', roles: ['approver'] };
const GROUPS = ['a', 'b', 'c'] as const;
export const PATHS = GROUPS.flatMap((group) => [`${group}/one`, `${group}/two`]);
const STEPS = 40;
/** Small values are in the row of their credential, and others are not. SOURCE: docs/formats.md. */
const SMALL = 10;
const LARGE = 3000;

export interface History {
  /** Earlier contents of the tables, the oldest first. */
  readonly copies: readonly Rows[];
  /** All that were issued, of sessions that have ended too. */
  readonly tokens: readonly string[];
}

/** Runs it on the nodes, of which the first keeps the keys of agents. */
export async function runHistory(nodes: readonly TestService[], dice: Dice): Promise<History> {
  const [first] = nodes;
  assert.ok(first);
  const copies: Rows[] = [];
  const tokens: string[] = [];
  const steps = stepsOf(first, () => dice.pick(nodes).admin, dice, tokens);
  // Something of each kind exists from the beginning.
  for (const name of AGENTS) await done(first.admin.post('/api/v1/agents', { name }));
  for (const step of [steps.putPolicy, steps.store, steps.putTargets, steps.logIn, steps.logInOperator]) await step();
  for (let taken = 0; taken < STEPS; taken++) {
    await dice.pick(Object.values(steps))();
    if (dice.chance(0.2)) copies.push(await readRows(first.dataDir));
  }
  // Every table has a row at the end: SQLite keeps the newest value in credential_versions only if it is large.
  await steps.store(LARGE);
  for (const step of [steps.putPolicy, steps.putTargets, steps.logInOperator, steps.answer]) await step();
  tokens.push(...(await logInAll(first)));
  return { copies, tokens };
}

/** A response that is not an error of the service; 404 and 409 are those of a step without an object. */
async function done(answer: ReturnType<Client['get']>): Promise<void> {
  const { status, text } = await answer;
  assert.ok(status < 300 || status === 404 || status === 409, `${status}: ${text}`);
}

function stepsOf(first: TestService, any: () => Client, dice: Dice, tokens: string[]) {
  const { admin, address, dataDir, as } = first;
  const path = (): string => dice.pick(PATHS);
  const agent = (): string => dice.pick(AGENTS);
  return {
    register: () => done(admin.post('/api/v1/agents', { name: agent() })),
    deregister: () => done(admin.delete(`/api/v1/agents/${agent()}`)),
    rotateAgent: () => done(admin.post(`/api/v1/agents/${agent()}/rotate`, {})),
    removeOperator: () => done(any().delete(`/api/v1/operators/${dice.pick(OPERATORS)}`)),
    replaceOperator: () => {
      const roles = dice.chance(0.5) ? ['editor'] : ['viewer', 'editor'];
      return done(any().put(`/api/v1/operators/${dice.pick(OPERATORS)}`, { roles, description: `${dice.next()}` }));
    },
    rotateOperator: () => {
      const body = { public_key: OPERATOR_KEY.publicKey };
      return done(any().post(`/api/v1/operators/${dice.pick(OPERATORS)}/rotate`, body));
    },
    putOperatorPolicy: () => {
      const name = dice.pick(OPERATORS);
      const policy = { principal: `operator:${name}`, resources: [`${dice.pick(GROUPS)}/*`], actions: ['retrieve'] };
      return done(any().put(`/api/v1/policies/${name}`, policy));
    },
    logInOperator: async () => {
      const name = dice.pick(OPERATORS);
      await done(admin.post('/api/v1/operators', { name, roles: ['editor'], public_key: OPERATOR_KEY.publicKey }));
      const token = await logIn(address, `operator:${name}`, OPERATOR_KEY.privateKey);
      if (dice.chance(0.5)) assert.equal((await as(token).post('/auth/session/renew')).status, 200);
      tokens.push(token);
    },
    panic: () => done(any().post('/api/v1/panic', { agent: agent() })),
    putPolicy: () => {
      const [name, group] = [agent(), dice.pick(GROUPS)];
      const actions = dice.chance(0.5) ? ['retrieve'] : ['retrieve', 'use', 'list'];
      const limits = actions.includes('use') ? { limits: { uses_per_hour: 1 + dice.below(50) } } : {};
      const policy = { principal: `agent:${name}`, resources: [`${group}/*`], actions, ...limits };
      return done(any().put(`/api/v1/policies/${name}-${group}`, { ...policy, max_ttl: 60 + dice.below(100) }));
    },
    removePolicy: () => done(any().delete(`/api/v1/policies/${agent()}-${dice.pick(GROUPS)}`)),
    store: (length = dice.pick([SMALL, LARGE])) => {
      const value = `${dice.next()} `.padEnd(length, 'x');
      return done(any().post('/api/v1/credentials', { path: path(), value }));
    },
    storeAgain: () => done(any().post('/api/v1/credentials', { path: PATHS[0], value: `${dice.next()}` })),
    removeCredential: () => done(any().delete(`/api/v1/credentials/${path()}`)),
    putTargets: async () => {
      const at = path();
      await done(any().post('/api/v1/credentials', { path: at, value: `${dice.next()}` }));
      await done(any().put(`/api/v1/targets/${at}`, { service: dice.pick(['openai', 'anthropic', 'github']) }));
    },
    removeTargets: () => done(any().delete(`/api/v1/targets/${path()}`)),
    logIn: async () => {
      const name = agent();
      await done(admin.post('/api/v1/agents', { name }));
      tokens.push(await logIn(address, name, readAgentKey(dataDir, name)));
    },
    logOut: async () => {
      const token = tokens[dice.below(tokens.length)];
      if (token !== undefined) await as(token).delete('/auth/session');
    },
    answer: async () => {
      const name = agent();
      const asked = `asked/${dice.next()}`;
      await done(admin.post('/api/v1/operators', { ...APPROVER, public_key: OPERATOR_KEY.publicKey }));
      await done(admin.post('/api/v1/agents', { name }));
      await done(admin.post('/api/v1/credentials', { path: asked, value: 'x' }));
      await demandApproval(first, name, ['asked/*']);
      const token = await logIn(address, name, readAgentKey(dataDir, name));
      const held = await askToRetrieve(first, token, asked);
      await held.abandon();
      const how = dice.pick(['approve', 'approve', 'deny', 'wait']);
      const { approval_id, nonce } = held;
      if (how !== 'wait') await done(any().post(`/api/v1/approvals/${approval_id}/${how}`, { nonce }));
      if (how === 'approve' && dice.chance(0.5)) await done(as(token).get(`/api/v1/credentials/${asked}`));
    },
    rotateKey: () => done(any().post('/api/v1/key/rotate', { key: dice.pick(['data', 'root', 'audit']) })),
    retrieve: () => done(any().get(`/api/v1/credentials/${path()}`)),
  };
}

async function logInAll({ admin, address, dataDir }: TestService): Promise<string[]> {
  const tokens: string[] = [];
  for (const name of AGENTS) {
    await done(admin.post('/api/v1/agents', { name }));
    tokens.push(await logIn(address, name, readAgentKey(dataDir, name)));
  }
  return tokens;
}
