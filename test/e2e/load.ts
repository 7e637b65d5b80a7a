/** The load of the crash test: concurrent clients, each sending one request after the other until the service ends. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Intent, Journal } from './client-journal.ts';
import { DIRECTORIES, NAMES, PATHS, policyBody, READERS, type Target } from './fixture.ts';
import { Reader, Registrar } from './load-agents.ts';
import type { Dice } from './random.ts';

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

  /** Creates the data of the load; the service is not killed meanwhile. */
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
