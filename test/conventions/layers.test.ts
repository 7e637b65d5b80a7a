// Which files may import which, checked for every file of src. The table is the rule; a test checks it with violations.

import assert from 'node:assert/strict';
import { builtinModules } from 'node:module';
import { test } from 'node:test';
import { importsOf, readSources, resolveImport, type Source, toSource } from './source.ts';

/** A directory of src or a package without a row here is rejected. */
const LAYERS = {
  mayImport: {
    core: [],
    platform: [],
    flags: ['core', 'platform'],
    crypto: ['core'],
    masking: ['core'],
    broker: ['core', 'platform', 'masking'],
    api: ['core'],
    store: ['core', 'platform'],
    ledger: ['core', 'crypto', 'store'],
    backup: ['core', 'platform', 'crypto'],
    vault: ['core', 'platform', 'crypto', 'store', 'ledger', 'broker', 'backup'],
    http: ['core', 'platform', 'api', 'ledger', 'broker', 'vault'],
    server: [
      'core',
      'platform',
      'flags',
      'api',
      'crypto',
      'store',
      'ledger',
      'broker',
      'backup',
      'vault',
      'http',
      'client',
    ],
    client: ['core', 'api'],
    run: ['core', 'platform', 'masking', 'client'],
    mcp: ['core', 'platform', 'api', 'client'],
    cli: [
      'core',
      'platform',
      'flags',
      'crypto',
      'backup',
      'masking',
      'api',
      'client',
      'run',
      'mcp',
      'server',
      'scripts/flags',
    ],
    bin: ['platform', 'store', 'broker', 'vault', 'server', 'cli'],
    console: ['core', 'api', 'client'],
  },
  belongsTo: {
    'node:crypto': ['crypto'],
    'shamir-secret-sharing': ['crypto'],
    '@aws-sdk': ['server'],
    '@simplewebauthn': ['crypto'],
    'openid-client': ['server'],
    'node:sqlite': ['store'],
    'lru-cache': ['crypto', 'store', 'ledger'],
    postgres: ['store'],
    'age-encryption': ['backup'],
    fastify: ['http'],
    typebox: ['api', 'http', 'mcp'],
    pino: ['server'],
    'prom-client': ['server'],
    '@lydell/node-pty': ['run'],
    '@modelcontextprotocol': ['mcp'],
    'smol-toml': ['cli'],
    commander: ['flags', 'cli'],
    yaml: ['cli'],
    'csv-parse': ['cli'],
    react: ['console'],
    'react-dom': ['console'],
    '@tanstack': ['console'],
    wouter: ['console'],
    'node:*': [
      'platform',
      'crypto',
      'broker',
      'backup',
      'store',
      'ledger',
      'vault',
      'http',
      'server',
      'client',
      'run',
      'mcp',
      'cli',
      'bin',
    ],
  },
} as const satisfies Record<string, Record<string, readonly string[]>>;

const rowsOf = (table: Record<string, readonly string[]>) => new Map(Object.entries(table));
const layerOf = (name: string): string | undefined =>
  name.startsWith('console/src/') ? 'console' : /^src\/([^/]+)\/./.exec(name)?.[1];
const isWithin = (name: string, part: string): boolean => name === part || /^[/.]/.test(name.slice(part.length));

function packageRow(specifier: string): readonly string[] | undefined {
  const rows = rowsOf(LAYERS.belongsTo);
  const isBuiltin = specifier.startsWith('node:') || builtinModules.includes(specifier);
  const name = isBuiltin ? `node:${specifier.replace(/^node:/, '')}` : specifier;
  const own = [...rows.keys()].find((part) => name.startsWith(part) && isWithin(name, part));
  return rows.get(own ?? (isBuiltin ? 'node:*' : ''));
}

function isAllowedFile(layer: string, target: string): boolean {
  const rows = rowsOf(LAYERS.mayImport).get(layer) ?? [];
  return [layer, ...rows].some((row) => {
    const part = row === 'console' ? 'console/src' : row.startsWith('scripts/') ? row : `src/${row}`;
    return target.startsWith(part) && isWithin(target, part);
  });
}

/** Every import of the file that the table does not allow, in words. */
function breaches(source: Source): string[] {
  const layer = layerOf(source.name);
  if (layer === undefined || !rowsOf(LAYERS.mayImport).has(layer)) return [`${source.name} belongs to no layer`];
  return importsOf(source).flatMap(({ specifier }) => {
    if (specifier === undefined) return [`${source.name} computes what it imports`];
    const isAllowed = specifier.startsWith('.')
      ? isAllowedFile(layer, resolveImport(source, specifier))
      : (packageRow(specifier)?.includes(layer) ?? false);
    return isAllowed ? [] : [`${source.name} imports ${specifier}`];
  });
}

/** The first import cycle that is found, type imports included; empty if none exists. */
function findCircle(sources: readonly Source[]): string[] {
  const relative = (source: Source) =>
    importsOf(source).flatMap(({ specifier }) =>
      specifier?.startsWith('.') ? [resolveImport(source, specifier)] : [],
    );
  const edges = new Map(sources.map((source) => [source.name, relative(source)]));
  const finished = new Set<string>();
  const walk = (name: string, way: readonly string[]): string[] => {
    if (way.includes(name)) return [...way.slice(way.indexOf(name)), name];
    if (finished.has(name)) return [];
    for (const next of edges.get(name) ?? []) {
      const circle = walk(next, [...way, name]);
      if (circle.length > 0) return circle;
    }
    finished.add(name);
    return [];
  };
  return [...edges.keys()].map((name) => walk(name, [])).find((circle) => circle.length > 0) ?? [];
}

const sources = readSources(['src', 'console/src'], ['.ts', '.tsx', '.mjs']);

test('src contains files, and each of them belongs to a layer of the table', () => {
  assert.notEqual(sources.length, 0, 'src holds no file');
  const homeless = sources.filter(({ name }) => !rowsOf(LAYERS.mayImport).has(layerOf(name) ?? ''));
  assert.deepEqual(
    homeless.map(({ name }) => name),
    [],
  );
});

test('core imports nothing but itself', () => {
  assert.deepEqual(sources.filter(({ name }) => layerOf(name) === 'core').flatMap(breaches), []);
});

test('every layer imports only what the table allows', () => {
  assert.deepEqual(sources.flatMap(breaches), []);
});

for (const [part, owners] of rowsOf(LAYERS.belongsTo)) {
  if (part === 'node:*') continue;
  test(`${part} is imported only by ${owners.join(' and ')}`, () => {
    const strangers = sources.filter(({ name }) => !owners.includes(layerOf(name) ?? ''));
    assert.deepEqual(
      strangers
        .flatMap(breaches)
        .filter((line) => line.includes(` imports ${part.replace('node:', '')}`) || line.includes(` imports ${part}`)),
      [],
    );
  });
}

test('the client loads, also in a browser, only core and itself: no schema and no package', () => {
  const byName = new Map(sources.map((source) => [source.name, source]));
  const loaded = new Set<string>();
  const load = (name: string): void => {
    if (loaded.has(name)) return;
    loaded.add(name);
    for (const { specifier = '', isTypeOnly } of importsOf(byName.get(name) ?? assert.fail(name))) {
      // Node's own modules are loaded where Node is.
      if (isTypeOnly || specifier.startsWith('node:')) continue;
      assert.match(specifier, /^\./, `${name} loads ${specifier}`);
      load(resolveImport(byName.get(name) ?? assert.fail(name), specifier));
    }
  };
  load('src/client/leasehold.ts');
  assert.equal(loaded.size > 10, true);
  assert.deepEqual(
    [...loaded].filter((name) => !/^src\/(?:client|core)\//.test(name)),
    [],
  );
});

test('the files have no import cycles', () => {
  assert.deepEqual(findCircle(sources), []);
});

test('core and masking use no clock, no randomness and no environment, and await nothing', () => {
  const impure =
    /\b(?:Date\.now|new Date\(\)|Math\.random|process\.|globalThis|performance\.|console\.|fetch\(|set(?:Timeout|Interval|Immediate)|async\s|await\s)/;
  const seen = toSource('src/core/a.ts', 'const at = Date.now(); // Math.random');
  assert.match(seen.code, impure);
  const pure = sources.filter(({ name }) => ['core', 'masking'].includes(layerOf(name) ?? ''));
  assert.deepEqual(
    pure.flatMap(({ name, code }) => code.match(impure)?.map((word) => `${name}: ${word}`) ?? []),
    [],
  );
});

const REFUSED: readonly [name: string, text: string][] = [
  ['src/core/a.ts', `import { readFileSync } from 'node:fs';`],
  ['src/core/a.ts', `import type { Buffer } from 'node:buffer';`],
  ['src/core/a.ts', `import fs from 'fs';`],
  ['src/core/a.ts', `import { seal } from '../crypto/sealing.ts';`],
  ['src/core/operations/a.ts', `export * from '../../ledger/ledger.ts';`],
  ['src/crypto/a.ts', `export {\n  rows,\n  columns as all,\n} from '../store/decode-rows.ts';`],
  ['src/store/a.ts', `import { createHash } from 'node:crypto';`],
  ['src/store/a.ts', `import { createHash } from 'crypto';`],
  ['src/vault/a.ts', `import { DatabaseSync } from 'node:sqlite';`],
  ['src/vault/a.ts', `const { randomBytes } = await import(/* lazily */ 'node:crypto');`],
  ['src/vault/a.ts', `const key = (k: import('node:crypto').KeyObject) => k;`],
  ['src/vault/a.ts', `const crypto = process.getBuiltinModule("crypto");`],
  ['src/vault/a.ts', `const require = createRequire(import.meta.url);`],
  ['src/vault/a.ts', 'await import(`node:$' + '{name}`);'],
  ['src/http/a.ts', `import '../store/store.ts';`],
  ['src/http/a.ts', `import type { Logger } from 'pino';`],
  ['src/server/a.ts', `import fastify from 'fastify';`],
  ['src/server/a.ts', `import { Type } from 'typebox/type';`],
  ['src/server/a.ts', `import { run } from '../cli/run.ts';`],
  ['src/server/a.ts', `import left from 'left-pad';`],
  ['src/server/a.ts', `import { version } from '../../package.json' with { type: 'json' };`],
  ['src/server/a.ts', `import { HARDENING } from '../../scripts/flags.mjs';`],
  ['src/cli/a.ts', `import { install } from '../../scripts/install.mjs';`],
  ['src/masking/a.ts', `import { Transform } from 'node:stream';`],
  ['src/broker/a.ts', `import { openRootKey } from '../server/root-key.ts';`],
  ['src/broker/a.ts', `import { createHash } from 'node:crypto';`],
  ['src/masking/a.ts', `import { run } from '../run/run.ts';`],
  ['src/client/a.ts', `import { Type } from 'typebox';`],
  ['src/client/a.ts', `import type { Server } from '../http/server.ts';`],
  ['src/api/a.ts', `import type { Route } from '../http/route.ts';`],
  ['src/vault/a.ts', `import type { Policy } from '../api/types.ts';`],
  ['console/src/a.tsx', `import { readFileSync } from 'node:fs';`],
  ['console/src/pages/a.tsx', `import type { Vault } from '../../../src/vault/vault.ts';`],
  ['src/http/a.ts', `import { createElement } from 'react';`],
  ['src/core2/a.ts', ''],
  ['src/a.ts', ''],
];

const ALLOWED: readonly [name: string, text: string][] = [
  ['src/core/a.ts', `// import fs from 'node:fs';\n/* import 'node:net' */ import { b } from './b.ts';`],
  [
    'src/core/a.ts',
    `const words = "import fs from 'node:fs'", tick = \`$\{f({ a: 1 })} import('pino')\`, slash = /'|import "x"/;`,
  ],
  ['src/core/operations/a.ts', `import type { Fault } from '../errors.ts';`],
  ['src/crypto/a.ts', `import { createHmac } from 'node:crypto';\nimport type { Entry } from '../core/audit.ts';`],
  ['src/vault/a.ts', `import { open } from 'node:fs/promises';\nimport { seal } from '../crypto/sealing.ts';`],
  ['src/http/a.ts', `import fastify, { type FastifyInstance } from 'fastify';\nimport { Type } from 'typebox';`],
  [
    'src/client/a.ts',
    `import type { Credential } from '../api/types.ts';\nimport type { Lease } from '../api/types/lease.ts';`,
  ],
  ['src/cli/a.ts', `import { HARDENING } from '../../scripts/flags.mjs';`],
  ['src/server/a.ts', `import { pino } from 'pino';\nimport { serve } from '../http/server.ts';`],
];

test('the rules detect every forbidden kind of import', () => {
  for (const [name, text] of REFUSED) assert.equal(breaches(toSource(name, text)).length, 1, `${name}: ${text}`);
});

test('the rules ignore imports that are allowed, quoted or commented out', () => {
  for (const [name, text] of ALLOWED) assert.deepEqual(breaches(toSource(name, text)), [], `${name}: ${text}`);
});

test('the search for cycles finds one of three files', () => {
  const ring = ['b', 'c', 'a'].map((next, at) =>
    toSource(`src/core/${'abc'[at]}.ts`, `import type { X } from './${next}.ts';`),
  );
  assert.deepEqual(findCircle(ring), ['src/core/a.ts', 'src/core/b.ts', 'src/core/c.ts', 'src/core/a.ts']);
  assert.deepEqual(findCircle(ring.slice(0, 2)), []);
});
