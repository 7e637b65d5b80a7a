/** The load of the crash test: concurrent clients, each sending one request after the other until the service ends. */
import assert from 'node:assert/strict';
import { sign } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '../kit/client.ts';
import type { Dice } from '../kit/dice.ts';
import type { Intent, Journal } from './client-journal.ts';
import { DIRECTORIES, NAMES, PATHS, policyBody, READERS, type Target } from './fixture.ts';

/** Pause after a rejection: immediate retries of all clients would starve other requests. */
const REFUSED_PAUSE_MS = 20;

/** Performs one action; resolves to false if the service has ended. */
type Step = (target: Target) => Promise<boolean>;

function writer(journal: Journal, dice: Dice, directory: string): Step {
  let count = 0;
  return async ({ admin }) => {
    const path = `${directory}/${dice.pick(NAMES)}`;
    const told = { agentName: 'admin', resource: path };
    if (dice.chance(0.15)) {
      const answer = await journal.send({ event: 'credential.delete', ...told }, () =>
        admin.delete(`/api/v1/credentials/${path}`),
      );
      return answer !== null;
    }
    count += 1;
    const said = {
      value: `${path} ${count} ${'v'.repeat(dice.chance(0.1) ? 40_000 : dice.below(200))}`,
      ...(dice.chance(0.5) ? { type: dice.pick(['token', 'password']) } : {}),
      ...(dice.chance(0.5) ? { description: `the ${count}th` } : {}),
    };
    const headers: Record<string, string> = dice.chance(0.1) ? { 'if-none-match': '*' } : {};
    const answer = await journal.send({ event: 'credential.store', ...told, ...said }, () =>
      admin.call('POST', '/api/v1/credentials', { path, ...said }, headers),
    );
    return answer !== null;
  };
}

function lawgiver(journal: Journal, dice: Dice): Step {
  return async ({ admin }) => {
    const name = dice.pick(['grant-0', 'grant-1', 'grant-2']);
    const told = { agentName: 'admin', resource: `policy:${name}` };
    const resources = [dice.pick(['*', 'load/*', 'load/w1/*', ...PATHS]), dice.pick(PATHS)];
    const address = `/api/v1/policies/${name}`;
    const answer = await dice.pick([
      () => journal.send({ event: 'policy.delete', ...told }, () => admin.delete(address)),
      () =>
        journal.send({ event: 'policy.create', ...told, resources }, () =>
          admin.post('/api/v1/policies', policyBody(name, resources)),
        ),
      () =>
        journal.send({ event: 'policy.replace', ...told, resources }, () =>
          admin.put(address, policyBody(name, resources)),
        ),
    ])();
    return answer !== null;
  };
}

export class Load {
  readonly #journal: Journal;
  readonly #steps: readonly Step[];

  constructor(journal: Journal, dice: Dice) {
    this.#journal = journal;
    const readers = READERS.map((name) => new Reader(journal, dice.fork(), name));
    const registrar = new Registrar(journal, dice.fork());
    this.#steps = [
      ...DIRECTORIES.map((directory) => writer(journal, dice.fork(), directory)),
      lawgiver(journal, dice.fork()),
      ...readers.map(
        (reader): Step =>
          (target) =>
            reader.step(target),
      ),
      (target) => registrar.step(target),
    ];
  }

  /** Creates the data of the load. The service is not killed during that time. */
  async prepare({ admin }: Target): Promise<void> {
    const make = async (intent: Omit<Intent, 'agentName'>, path: string, body: object): Promise<void> => {
      const answer = await this.#journal.send({ ...intent, agentName: 'admin' }, () => admin.post(path, body));
      assert.equal(answer?.status, 201, String(answer?.text));
    };
    for (const name of READERS) {
      await make({ event: 'agent.register', resource: `agent:${name}` }, '/api/v1/agents', { name });
    }
    for (const name of ['standing', 'temps']) {
      const body = policyBody(name, ['load/w0/*']);
      const { resources } = body;
      await make({ event: 'policy.create', resource: `policy:${name}`, resources }, '/api/v1/policies', body);
    }
  }

  /** Resolves when every client has noticed that the service ended. */
  async run(target: Target): Promise<void> {
    await Promise.all(
      this.#steps.map(async (step) => {
        while (await step(target));
      }),
    );
  }

  /** Continues despite errors; resolves when it is stopped and every client has its last response. */
  async runUntil(target: Target, isOver: () => boolean): Promise<void> {
    await Promise.all(
      this.#steps.map(async (step) => {
        while (!isOver()) if (!(await step(target))) await sleep(REFUSED_PAUSE_MS);
      }),
    );
  }
}

/** Logs the agent in with its key from the data directory; null if the service has ended. */
async function logIn(journal: Journal, { address, keyOf }: Target, name: string): Promise<string | null> {
  const anonymous = createClient(address, null);
  const asked = await journal.ask(() => anonymous.post('/auth/challenge', { agent_name: name }));
  if (asked === null) return null;
  const { challenge_id, nonce } = asked.body.data;
  const signature = sign(null, Buffer.from(nonce, 'base64'), keyOf(name)).toString('base64');
  const proof = { challenge_id, agent_name: name, signature };
  const answer = await journal.send({ event: 'auth.verify', agentName: name, resource: `agent:${name}`, proof }, () =>
    anonymous.post('/auth/verify', proof),
  );
  if (answer === null) return null;
  assert.equal(answer.status, 200, answer.text);
  return answer.body.data.session_id;
}

/** A permanent reader. */
class Reader {
  readonly #journal: Journal;
  readonly #dice: Dice;
  readonly #name: string;
  /** Lives on over restarts, as a session does. */
  #token: string | null = null;
  #leases: string[] = [];

  constructor(journal: Journal, dice: Dice, name: string) {
    this.#journal = journal;
    this.#dice = dice;
    this.#name = name;
  }

  async step(target: Target): Promise<boolean> {
    const dice = this.#dice;
    if (this.#token === null || dice.chance(0.04)) {
      this.#token = await logIn(this.#journal, target, this.#name);
      return this.#token !== null;
    }
    const lease = this.#leases.length > 0 && dice.chance(0.2) ? dice.pick(this.#leases) : null;
    if (lease !== null) return dice.chance(0.6) ? this.#renew(target, lease) : this.#revoke(target, lease);
    if (dice.chance(0.02)) return this.#revokeMany(target, dice.pick(PATHS));
    if (dice.chance(0.02)) return this.#logOut(target, this.#token);
    return this.#retrieve(target, dice.pick(PATHS));
  }

  #client({ address }: Target) {
    return createClient(address, this.#token);
  }

  async #retrieve(target: Target, path: string): Promise<boolean> {
    const answer = await this.#journal.send(
      { event: 'credential.retrieve', agentName: this.#name, resource: path },
      () => this.#client(target).get(`/api/v1/credentials/${path}`),
    );
    if (answer?.status === 200) this.#leases = [answer.body.data.lease_id, ...this.#leases.slice(0, 9)];
    return answer !== null;
  }

  async #renew(target: Target, lease: string): Promise<boolean> {
    const told = { event: 'lease.renew', agentName: this.#name, resource: `lease:${lease}` };
    return (await this.#journal.send(told, () => this.#client(target).post(`/api/v1/leases/${lease}/renew`))) !== null;
  }

  async #revoke(target: Target, lease: string): Promise<boolean> {
    const told = { event: 'lease.revoke', agentName: this.#name, resource: `lease:${lease}` };
    return (await this.#journal.send(told, () => this.#client(target).delete(`/api/v1/leases/${lease}`))) !== null;
  }

  async #revokeMany(target: Target, path: string): Promise<boolean> {
    const told = { event: 'lease.revoke', agentName: this.#name, resource: path, path };
    const answer = await this.#journal.send(told, () => this.#client(target).post('/api/v1/leases/revoke', { path }));
    return answer !== null;
  }

  async #logOut(target: Target, token: string): Promise<boolean> {
    this.#token = null;
    const told = { event: 'session.end', agentName: this.#name, resource: `agent:${this.#name}`, token };
    return (await this.#journal.send(told, () => createClient(target.address, token).delete('/auth/session'))) !== null;
  }
}

/** Creates and deletes agents. */
class Registrar {
  readonly #journal: Journal;
  readonly #dice: Dice;
  #count = 0;
  /** Names of agents whose registration was confirmed. */
  readonly #names: string[] = [];

  constructor(journal: Journal, dice: Dice) {
    this.#journal = journal;
    this.#dice = dice;
  }

  async step(target: Target): Promise<boolean> {
    const name = this.#names.length > 3 || this.#dice.chance(0.4) ? this.#names.shift() : undefined;
    if (name !== undefined) return this.#deregister(target, name);
    return this.#register(target, `temp-${++this.#count}`);
  }

  async #register(target: Target, name: string): Promise<boolean> {
    const told = { event: 'agent.register', agentName: 'admin', resource: `agent:${name}` };
    const answer = await this.#journal.send(told, () => target.admin.post('/api/v1/agents', { name }));
    if (answer === null) return false;
    assert.equal(answer.status, 201, answer.text);
    this.#names.push(name);
    if (this.#dice.chance(0.5)) return true;
    const token = await logIn(this.#journal, target, name);
    if (token === null) return false;
    const path = this.#dice.pick(PATHS);
    const retrieved = await this.#journal.send({ event: 'credential.retrieve', agentName: name, resource: path }, () =>
      createClient(target.address, token).get(`/api/v1/credentials/${path}`),
    );
    return retrieved !== null;
  }

  async #deregister({ admin }: Target, name: string): Promise<boolean> {
    const told = { event: 'agent.deregister', agentName: 'admin', resource: `agent:${name}` };
    return (await this.#journal.send(told, () => admin.delete(`/api/v1/agents/${name}`))) !== null;
  }
}
