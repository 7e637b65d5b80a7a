/** Random histories with few names, so that callers, leases and deletions collide. */
import fc from 'fast-check';
import { type Command, type History, OWN, type PolicyFields, type Wait } from './commands.ts';

const AGENTS = ['a', 'ab', 'A', 'constructor'];
export const PATHS = ['p', 'p/x', 'p/x/y', 'p/__proto__', 'px', 'q'];
export const ACTIONS = ['retrieve', 'list', 'store', 'delete'];
const POLICY_NAMES = ['p1', 'p2', 'p3', 'P1'];

const agents = fc.constantFrom(...AGENTS, 'a', 'a', 'a', 'a', 'ab', 'ab');
const paths = fc.constantFrom(...PATHS, 'p', 'p', 'p/x', 'p/x', 'p/x', 'p/x');
const callers = fc.constantFrom(0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5, 6, 7);
const administrators = fc.constantFrom(0, 0, 0, 0, 0, 0, 2);
const policyNames = fc.constantFrom(...POLICY_NAMES);
const recent = fc.constantFrom(0, 0, 0, 1, 1, 2, 3, 4, 5);

const policies: fc.Arbitrary<PolicyFields> = fc.record({
  name: policyNames,
  principal: fc.constantFrom('agent:a', 'agent:a', 'agent:a*', 'agent:*', 'agent:ab', 'agent:A', 'agent:constructor'),
  resources: fc.uniqueArray(fc.constantFrom('*', 'p/*', 'p/x/*', 'p/x', 'p', 'q'), { minLength: 1, maxLength: 2 }),
  actions: fc.uniqueArray(fc.constantFrom(...ACTIONS, 'retrieve'), { minLength: 1, maxLength: 4 }),
  maxTtlSeconds: fc.constantFrom(1, 60, 300, 31_536_000),
});

const commands: fc.Arbitrary<readonly Command[]> = fc.oneof(
  one(12, {
    kind: is('retrieve'),
    by: callers,
    path: paths,
    version: fc.constantFrom(null, null, null, null, null, null, 1, 2, 3),
    ttl: fc.constantFrom(null, null, 1, 100),
  }),
  one(4, {
    kind: is('store'),
    by: callers,
    path: paths,
    type: fc.constantFrom(null, null, 'token'),
    description: fc.constantFrom(null, null, 'said', ''),
    onlyIfNew: fc.constantFrom(false, false, false, true),
  }),
  one(4, { kind: is('remove', 'look'), by: callers, path: paths }),
  one(2, { kind: is('list', 'listLeases', 'readSession', 'endSession'), by: callers }),
  one(2, { kind: is('createPolicy', 'replacePolicy'), by: administrators, policy: policies }),
  one(2, {
    kind: is('deletePolicy', 'deletePolicy', 'deletePolicy', 'readPolicy'),
    by: administrators,
    name: policyNames,
  }),
  one(1, {
    kind: is('simulate'),
    by: callers,
    agent: agents,
    path: paths,
    action: fc.constantFrom(...ACTIONS, 'destroy'),
  }),
  one(1, { kind: is('register'), by: administrators, name: agents, description: fc.constantFrom('', 'builds') }),
  one(1, { kind: is('deregister'), by: administrators, name: agents }),
  one(5, { kind: is('readLease', 'revoke', 'renew', 'renew'), by: callers, lease: recent }),
  one(1, {
    kind: is('revokeMany'),
    by: callers,
    agent: fc.constantFrom(OWN, OWN, 'admin', ...AGENTS),
    path: fc.option(paths),
  }),
  one(1, { kind: is('revokeMany'), by: callers, agent: fc.constant(null), path: paths }),
  one(1, { kind: is('readAudit'), by: callers }),
  one(1, { kind: is('challenge'), name: agents }),
  one(2, { kind: is('verify'), name: agents, challenge: recent, isSigned: fc.constantFrom(true, true, false) }),
  one(1, { kind: is('start') }),
  { weight: 4, arbitrary: agents.map(login) },
);

const waits: fc.Arbitrary<Wait> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(0, 0, 1, 500, 999, 1000, 30_000).map((ms) => ({ ms })) },
  {
    weight: 1,
    arbitrary: fc.record({ end: fc.constantFrom(0, 0, 0, 0, 1, 1, 2, 5), delta: fc.constantFrom(-1, 0, 1) }),
  },
);

const turns = fc.record({
  wait: waits,
  commands: fc.array(commands, { minLength: 1, maxLength: 6 }).map((all) => all.flat()),
});

/** Requests a challenge and signs it. */
function login(name: string): readonly Command[] {
  return [
    { kind: 'challenge', name },
    { kind: 'verify', name, challenge: 0, isSigned: true },
  ];
}

const grant = (
  name: string,
  principal: string,
  resource: string,
  actions: string[],
  maxTtlSeconds: number,
): Command => ({
  kind: 'createPolicy',
  by: 0,
  policy: { name, principal, resources: [resource], actions, maxTtlSeconds },
});
const stored = (path: string): Command => ({
  kind: 'store',
  by: 0,
  path,
  type: null,
  description: null,
  onlyIfNew: false,
});
const registered = (name: string): Command => ({ kind: 'register', by: 0, name, description: '' });

/** Commands that most histories need; each history begins with some of them. */
const BEGINNING: (readonly Command[])[] = [
  [registered('a'), registered('ab')],
  [...login('a'), ...login('ab')],
  [grant('p1', 'agent:a*', 'p/*', ['retrieve', 'list', 'store'], 300), grant('p2', 'agent:a', '*', ACTIONS, 300)],
  [stored('p/x'), stored('p'), stored('p/x')],
];

export const histories: fc.Arbitrary<History> = fc
  .record({
    adminMayRetrieve: fc.constantFrom(true, true, true, false),
    versionsKept: fc.constantFrom(1, 2, 10),
    beginning: fc.oneof(
      { weight: 4, arbitrary: fc.constant(BEGINNING) },
      { weight: 1, arbitrary: fc.subarray(BEGINNING) },
    ),
    turns: fc.array(turns, { minLength: 1, maxLength: 16, size: 'max' }),
  })
  .map(({ beginning, turns: rest, ...settings }) => ({
    ...settings,
    turns: [...beginning.map((all) => ({ wait: { ms: 0 }, commands: all })), ...rest],
  }));

function is<K extends Command['kind']>(...kinds: K[]): fc.Arbitrary<K> {
  return fc.constantFrom(...kinds);
}

function one<C extends Command>(weight: number, fields: { [Field in keyof C]: fc.Arbitrary<C[Field]> }) {
  // Every field of a command is generated, so the record is a command.
  const drawn = fc.record(fields) as unknown as fc.Arbitrary<C>;
  return { weight, arbitrary: drawn.map((command): readonly Command[] => [command]) };
}
