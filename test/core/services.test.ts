// The catalogue of services: every row is well formed, matches its service's real requests, and recognises those whose
// response is another secret. docs/services.md shows the same.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InputOf } from '../../src/engine/field.ts';
import {
  completeBinding,
  findService,
  recogniseKey,
  SERVICES,
  serviceTargets,
  TargetsRequest,
} from '../../src/vault/catalogue/catalogue.ts';
import {
  defineService,
  keyShape,
  mintingEndpoints,
  type ServiceDefinition,
} from '../../src/vault/catalogue/definition.ts';
import { returnsSecret } from '../../src/vault/catalogue/secret-endpoints.ts';
import {
  findTarget,
  type PlacementFields,
  parseMethod,
  parsePlacement,
  parseTargets,
  type TargetFields,
} from '../../src/vault/use/target.ts';
import { parseUrl } from '../../src/vault/use/upstream-url.ts';
import { refusal } from './refusals.ts';
import { MINTING, ORDINARY } from './service-requests.ts';

const SUPPORTED = SERVICES.filter((service) => service.unsupported === null);
const request = (method: string, url: string) => ({ method: parseMethod(method), url: parseUrl(url) });

/** A row found by name. */
function service(name: string): ServiceDefinition {
  return findService(name) ?? assert.fail(`${name} is not in the catalogue`);
}

/** Reads `POST https://…` as a request. */
function requestOf(line: string) {
  const [method = '', url = ''] = line.split(' ');
  return request(method, url);
}

test('the catalogue has the 24 services that the documentation promises, and aws, which is not supported', () => {
  assert.deepEqual(
    SERVICES.map(({ name }) => name),
    [
      'anthropic',
      'aws',
      'cloudflare',
      'datadog',
      'discord',
      'gemini',
      'github',
      'gitlab',
      'google',
      'hugging-face',
      'jira',
      'linear',
      'notion',
      'npm',
      'openai',
      'openrouter',
      'pypi',
      'replicate',
      'sendgrid',
      'sentry',
      'slack',
      'stripe',
      'supabase',
      'twilio',
      'vercel',
    ],
  );
});

const BEARER = { kind: 'bearer' } as const;
const API_KEY = { kind: 'header', name: 'x-api-key', template: '{value}' } as const;
const ANTHROPIC = { origin: 'https://api.anthropic.com', paths: ['/v1/*'] };
const ACME = { origin: 'https://acme.atlassian.net' };
/** The fields of a request, and the origins, paths, methods and placement that are stored. */
const CREDENTIAL_TARGETS: readonly (readonly [
  asked: InputOf<typeof TargetsRequest.fields>,
  targets: readonly TargetFields[],
  placement: PlacementFields,
])[] = [
  [{ service: 'anthropic' }, [ANTHROPIC], API_KEY],
  [
    { service: 'openai', targets: [{ origin: 'https://eu.api.openai.com', paths: ['/v1/*'] }] },
    [{ origin: 'https://eu.api.openai.com', paths: ['/v1/*'] }],
    BEARER,
  ],
  [{ service: 'anthropic', placement: BEARER }, [ANTHROPIC], BEARER],
  [
    {
      service: 'jira',
      targets: [
        { ...ACME, methods: ['GET'] },
        { ...ACME, paths: ['/own/*'] },
      ],
    },
    [
      { ...ACME, paths: ['/rest/*'], methods: ['GET'] },
      { ...ACME, paths: ['/own/*'] },
    ],
    { kind: 'basic' },
  ],
];

test('a service fills targets and placement, and given fields override its own', () => {
  for (const [asked, targets, placement] of CREDENTIAL_TARGETS) {
    const complete = completeBinding(TargetsRequest.parse(asked));
    assert.deepEqual(
      [complete.service, complete.allowedTargets, complete.placement],
      [asked.service, parseTargets(targets), parsePlacement(placement)],
      JSON.stringify(asked),
    );
  }
});

test('a service whose host is the user’s needs it in the first target', () => {
  for (const targets of [
    undefined,
    [{ origin: 'https://evil.example.com' }],
    [{ origin: 'https://example.com' }, ACME],
  ]) {
    assert.match(
      refusal('targets', () => completeBinding(TargetsRequest.parse({ service: 'jira', targets }))),
      /^targets: must name your own host for jira/,
    );
  }
});

const random = (length: number): string => 'aZ3kQ9xB7mN2pL5vR8tW4yC6'.repeat(8).slice(0, length);
const KEYS: readonly [name: string, value: string, service: string | null][] = [
  ['ANY', `sk-proj-${random(40)}`, 'openai'],
  ['OPENAI_API_KEY', `sk-${random(48)}`, 'openai'],
  ['MY_OPENAI_KEY', `sk-${random(48)}`, 'openai'],
  // Keys of other companies have the same form.
  ['DEEPSEEK_API_KEY', `sk-${random(48)}`, null],
  ['ANY', `sk-ant-api03-${random(90)}`, 'anthropic'],
  ['OPENAI_API_KEY', `sk-ant-api03-${random(90)}`, 'anthropic'],
  ['ANY', `sk-or-v1-${'0a'.repeat(32)}`, 'openrouter'],
  ['ANY', `ghp_${random(36)}`, 'github'],
  ['ANY', `github_pat_${random(60)}`, 'github'],
  ['ANY', `glpat-${random(20)}`, 'gitlab'],
  ['STRIPE_SECRET_KEY', `sk_live_${random(24)}`, 'stripe'],
  ['CLERK_SECRET_KEY', `sk_live_${random(24)}`, null],
  ['GOOGLE_API_KEY', `AIza${random(35)}`, 'gemini'],
  ['MAPS_KEY', `AIza${random(35)}`, null],
  ['ANY', `SG.${random(22)}.${random(43)}`, 'sendgrid'],
  // Not the whole value, a service that is not supported, needs a host, or a user beside the key.
  ['ANY', `token ghp_${random(36)}`, null],
  ['ANY', `AKIA${'A'.repeat(16)}`, null],
  ['SUPABASE_SECRET_KEY', `sb_secret_${random(31)}`, null],
  ['TWILIO_API_KEY', `SK${'0a'.repeat(16)}`, null],
  ['JIRA_TOKEN', `ATATT3${random(180)}`, null],
  ['DB_PASSWORD', 'hunter2', null],
];

test('a key is recognised by its form, and by its name where other companies have the form too', () => {
  for (const [name, value, expected] of KEYS) assert.equal(recogniseKey(name, value)?.name ?? null, expected, value);
});

test('every name is well formed, unique and found', () => {
  for (const row of SERVICES) {
    assert.match(row.name, /^[a-z0-9-]{1,32}$/);
    assert.equal(findService(row.name), row);
  }
  assert.equal(new Set(SERVICES.map(({ name }) => name)).size, SERVICES.length);
  assert.equal(findService('open-ai'), null);
  assert.equal(findService('constructor'), null);
});

test('every row of a supported service has targets and a placement that the grammar accepts', () => {
  assert.ok(SUPPORTED.length >= 24);
  for (const row of SUPPORTED) {
    const targets = parseTargets(row.targets);
    assert.ok(
      targets.every(
        ({ origin, allowNetworks, caPem }) => origin.startsWith('https:') && !allowNetworks.length && !caPem,
      ),
      row.name,
    );
    parsePlacement(row.placement);
  }
});

test('every variable is well formed and has the fields that its kind needs', () => {
  for (const { name: row, variables } of SERVICES) {
    for (const { name, holds, suffix, value } of variables) {
      assert.match(name, /^[A-Za-z_][A-Za-z0-9_]{0,63}$/, row);
      assert.equal(suffix !== undefined, holds === 'base-url', name);
      assert.equal(value !== undefined, holds === 'fixed', name);
      if (suffix !== undefined) assert.match(suffix, /^(?:\/[a-z0-9./]*)?$/, name);
    }
    assert.equal(new Set(variables.map(({ name }) => name)).size, variables.length, row);
  }
});

test('what a base URL ends with lies within the first target', () => {
  for (const row of SUPPORTED) {
    const [target = assert.fail(row.name)] = row.targets;
    for (const { suffix = '', holds } of row.variables) {
      if (holds !== 'base-url' || suffix === '') continue;
      const [method = 'GET'] = target.methods ?? [];
      const url = `${target.origin}${suffix.replace(/\/$/, '')}/x`;
      assert.ok(findTarget(parseTargets(row.targets), request(method, url)), `${row.name}: ${url}`);
    }
  }
});

test('a placeholder that an SDK checks can have one of the prefixes', () => {
  for (const { name, key } of SERVICES) {
    if (key.checkedBySdk === null) continue;
    assert.ok(
      key.prefixes.some((prefix) => key.checkedBySdk?.test(`${prefix}lhu_0123`)),
      name,
    );
  }
});

test('each service allows its own requests, and no other host', () => {
  for (const row of SUPPORTED) {
    const targets = parseTargets(row.targets);
    for (const line of ORDINARY[row.name] ?? assert.fail(`${row.name} has no example requests`)) {
      assert.ok(findTarget(targets, requestOf(line)), line);
      assert.equal(returnsSecret(row, requestOf(line)), false, line);
    }
    assert.equal(findTarget(targets, request('POST', 'https://api.example.com/v1/models')), null);
  }
});

test('requests whose response is a secret are recognised', () => {
  for (const [name, lines] of Object.entries(MINTING)) {
    for (const line of lines) {
      assert.ok(findTarget(parseTargets(service(name).targets), requestOf(line)), line);
      assert.equal(returnsSecret(service(name), requestOf(line)), true, line);
    }
  }
  const silent = SUPPORTED.filter(
    ({ name, secretEndpoints }) => secretEndpoints.length > 0 && MINTING[name] === undefined,
  );
  assert.deepEqual(silent, []);
});

test('every minting endpoint is well formed, lies within its service’s targets and is recognised', () => {
  for (const row of SUPPORTED) {
    const targets = parseTargets(row.targets);
    for (const { methods, path } of row.secretEndpoints) {
      assert.match(path, /^(?:\/[A-Za-z0-9._:-]*(?:\*[A-Za-z0-9._:-]*)?)+(?:\/\*\*)?$/, row.name);
      for (const method of methods ?? ['GET', 'POST']) {
        const requests = row.targets.map(({ origin }) =>
          request(method, `${origin.replace('*', 'x')}${path.replaceAll(/\*+/g, 'x1')}`),
        );
        const within = requests.filter((each) => findTarget(targets, each) !== null);
        assert.notEqual(within.length, 0, `${row.name}: ${method} ${path} is outside the targets`);
        for (const each of within) assert.equal(returnsSecret(row, each), true, path);
      }
    }
  }
});

const SAMPLE = defineService({
  name: 'sample',
  title: 'Sample',
  targets: [{ origin: 'https://api.example.com' }],
  key: keyShape([], []),
  secretEndpoints: mintingEndpoints(
    'POST /v1/keys',
    'GET /v1/apps/*/secret',
    'ANY /v1/users/user:*',
    'PUT,PATCH /v1/a/*:sign',
    'GET /v1/b/**',
  ),
});

const READINGS = {
  'mints a secret': [
    'POST /v1/keys',
    'POST /v1/keys/',
    'POST /v1/keys.json',
    'POST /v1/keys?x=1',
    'POST /V1/Keys',
    'POST /v1/%6beys',
    'POST /v1/%256beys',
    'POST /v1%2fkeys',
    'POST /v1%252Fkeys',
    'POST /v1/keys;a=b',
    'POST /v1/keys%3Ba=b',
    'GET /v1/apps/a/secret',
    'HEAD /v1/apps/a/secret',
    'GET /v1/apps/a%2Fb/secret',
    'GET /v1/apps/a%2Fb/%73ecret',
    'GET /v1/apps/a.json/secret',
    'DELETE /v1/users/user:ann',
    'PATCH /v1/a/b:sign',
    'GET /v1/b/c',
    'GET /v1/b/c/d/e',
  ],
  'mints nothing': [
    'GET /v1/keys',
    'POST /v1/keys/k1',
    'POST /v1/keysets',
    'POST /v2/keys',
    'POST /v1',
    'GET /v1/apps/a/b/secret',
    'GET /v1/apps/secret',
    'DELETE /v1/users/user:',
    'PATCH /v1/a/b:sign:more',
    'GET /v1/b',
  ],
};

for (const [claim, lines] of Object.entries(READINGS)) {
  test(`a request that ${claim}, as servers may read it`, () => {
    for (const line of lines) {
      const read = requestOf(line.replace(' ', ' https://api.example.com'));
      assert.equal(returnsSecret(SAMPLE, read), claim === 'mints a secret', line);
    }
  });
}

test('a service whose hosts belong to different customers needs the user’s own host', () => {
  assert.deepEqual(
    SERVICES.filter(({ needsHost }) => needsHost).map(({ name }) => name),
    ['jira', 'supabase'],
  );
  const supabase = service('supabase');
  const [target] = serviceTargets(supabase, 'https://abcdefghij.supabase.co');
  assert.deepEqual(target, { ...supabase.targets[0], origin: 'https://abcdefghij.supabase.co' });
  const wrong = [
    undefined,
    'https://*.supabase.co',
    'https://a.b.supabase.co',
    'https://supabase.co',
    'http://a.supabase.co',
    'https://a.supabase.co/',
    'https://a.supabase.co:8443',
    'https://a.supabase.co.example.com',
    'x',
  ];
  for (const origin of wrong) {
    assert.match(
      refusal('targets', () => serviceTargets(supabase, origin)),
      /https:\/\/\*\.supabase\.co/,
    );
  }
});

test('a service with fixed hosts has its targets as they are, and an unsupported one has none', () => {
  assert.equal(serviceTargets(service('openai')), service('openai').targets);
  assert.match(
    refusal('service', () => serviceTargets(service('aws'))),
    /not sign/,
  );
  assert.equal(service('aws').targets.length, 0);
});

test('a wildcard is only in the origins of a service that needs a host, or of hosts of one company', () => {
  const wild = SUPPORTED.filter(({ targets }) => targets.some(({ origin }) => origin.includes('*')));
  assert.deepEqual(
    wild.filter(({ needsHost }) => !needsHost).map(({ name }) => name),
    ['google'],
  );
});

test('on another host the paths of a minting endpoint may have a prefix', () => {
  const mint = requestOf('POST https://github.example.com/api/v3/app/installations/1/access_tokens');
  assert.equal(returnsSecret(service('github'), mint, true), false);
  assert.equal(returnsSecret(service('github'), mint, false), true);
  assert.equal(
    returnsSecret(service('github'), requestOf('POST https://github.example.com/api/v3/repos/a/b/issues'), false),
    false,
  );
});
