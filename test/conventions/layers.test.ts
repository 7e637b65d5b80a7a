// Which files may import which, checked for every file of src. The table is the rule; a test checks it with violations.

import assert from 'node:assert/strict';
import { builtinModules } from 'node:module';
import { test } from 'node:test';
import { importsOf, readSources, resolveImport, type Source, toSource } from './source.ts';

/**
 * The pure layers: the engine knows no subject. The folder of a subject in src/vault contains files of two layers: a
 * file that is pure, and imports pure files only, belongs to core; any other belongs to vault.
 */
const PURE = ['engine', 'core'] as const;

/** A directory of src or a package without a row here is rejected. */
const LAYERS = {
  mayImport: {
    engine: [],
    core: ['engine'],
    platform: [],
    flags: [...PURE, 'platform'],
    crypto: [...PURE],
    masking: [...PURE],
    broker: [...PURE, 'platform', 'masking'],
    api: [...PURE],
    store: [...PURE, 'platform', 'crypto'],
    ledger: [...PURE, 'crypto', 'store'],
    backup: [...PURE, 'platform', 'crypto', 'store'],
    vault: [...PURE, 'platform', 'crypto', 'store', 'ledger', 'broker', 'backup'],
    http: [...PURE, 'platform', 'api', 'ledger', 'broker', 'vault'],
    server: [
      ...PURE,
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
    client: [...PURE, 'api'],
    run: [...PURE, 'platform', 'masking', 'client'],
    mcp: [...PURE, 'platform', 'api', 'client'],
    cli: [
      ...PURE,
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
    console: [...PURE, 'api', 'client'],
  },
  belongsTo: {
    'node:crypto': ['crypto'],
    'shamir-secret-sharing': ['crypto'],
    '@aws-sdk': ['server'],
    '@smithy': ['server'],
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
const IMPURE =
  /\b(?:Date\.now|new Date\(\)|Math\.random|process\.|globalThis|performance\.|console\.|fetch\(|set(?:Timeout|Interval|Immediate)|async\s|await\s)/;

const sources = readSources(['src', 'console/src'], ['.ts', '.tsx', '.mjs']);

/** The files of subjects that are pure, with all that they import. */
const pureFiles = new Set<string>();

function layerOf(name: string): string | undefined {
  if (pureFiles.has(name)) return 'core';
  return name.startsWith('console/src/') ? 'console' : /^src\/([^/]+)\/./.exec(name)?.[1];
}

/** Begins with every file that could be pure, and removes those that import another one. */
function findPureFiles(): void {
  const ofSubjects = sources.filter(({ name, code }) => /^src\/vault\/[^/]+\//.test(name) && !IMPURE.test(code));
  for (const { name } of ofSubjects) pureFiles.add(name);
  const isPure = (source: Source): boolean =>
    importsOf(source).every(
      ({ specifier = '' }) =>
        specifier.startsWith('.') && [...PURE].some((layer) => layer === layerOf(resolveImport(source, specifier))),
    );
  for (let removed = true; removed; ) {
    const impure = ofSubjects.filter((source) => pureFiles.has(source.name) && !isPure(source));
    for (const { name } of impure) pureFiles.delete(name);
    removed = impure.length > 0;
  }
}
findPureFiles();

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
  return [layer, ...rows].some((row) =>
    row.startsWith('scripts/') ? target.startsWith(row) && isWithin(target, row) : row === layerOf(target),
  );
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

test('src contains files, and each of them belongs to a layer of the table', () => {
  assert.notEqual(sources.length, 0, 'src holds no file');
  const homeless = sources.filter(({ name }) => !rowsOf(LAYERS.mayImport).has(layerOf(name) ?? ''));
  assert.deepEqual(
    homeless.map(({ name }) => name),
    [],
  );
});

test('every layer imports only what the table allows', () => {
  assert.deepEqual(sources.flatMap(breaches), []);
});

test('the client loads, also in a browser, only the pure layers and itself: no schema and no package', () => {
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
    [...loaded].filter((name) => !['client', ...PURE].includes(layerOf(name) ?? '')),
    [],
  );
});

test('the pure layers and masking use no clock, no randomness and no environment, and await nothing', () => {
  const seen = toSource('src/core/a.ts', 'const at = Date.now(); // Math.random');
  assert.match(seen.code, IMPURE);
  const pure = sources.filter(({ name }) => [...PURE, 'masking'].some((layer) => layer === layerOf(name)));
  assert.deepEqual(
    pure.flatMap(({ name, code }) => code.match(IMPURE)?.map((word) => `${name}: ${word}`) ?? []),
    [],
  );
});
