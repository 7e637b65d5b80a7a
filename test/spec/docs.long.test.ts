// docs/api.md agrees with the route tables, and its examples, run in order, print the output shown.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TSchema } from 'typebox';
import { ERROR_STATUS } from '../../src/api/errors.ts';
import { EVENT_TYPES, PERMISSIONS } from '../../src/core/permissions.ts';
import type { Route } from '../../src/http/route.ts';
import { ROUTES } from '../../src/http/routes/route-table.ts';
import { RESULTS } from '../../src/vault/audit/audit-entry.ts';
import { ACTIONS } from '../../src/vault/policies/policy.ts';
import { startUpstream } from '../broker/upstream.ts';
import { readBlocks, withPlaceholders } from '../e2e/markdown.ts';
import { Shell } from '../e2e/shell.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/api.md'), 'utf8');
const ROUTE = /^(?:GET|POST|PUT|DELETE) \//;
/** The text under each heading, up to the next one. */
const sections = new Map(
  page
    .split(/^#+ /m)
    .slice(1)
    .map((section): [string, string] => {
      const end = section.indexOf('\n');
      return [section.slice(0, end), section.slice(end)];
    }),
);
const blocks = readBlocks(page);

/** Every property that a schema names, including nested ones. */
function fieldsOf(schema: TSchema): string[] {
  const {
    properties = {},
    items,
    anyOf = [],
  } = schema as Record<string, never> & {
    properties?: Record<string, TSchema>;
    items?: TSchema;
    anyOf?: TSchema[];
  };
  const inner = [...Object.values(properties), ...(items === undefined ? [] : [items]), ...anyOf];
  return [...Object.keys(properties), ...inner.flatMap(fieldsOf)];
}

function answerFields({ data }: Route): string[] {
  return data === null ? [] : fieldsOf(data);
}

/** The words in backticks in a text. */
const quoted = (text: string) => new Set([...text.matchAll(/`([^`\n]+)`/g)].map(([, word]) => word));

/** The routes that only the console calls are rows of one table; the OpenAPI document has their fields. */
const isOfConsole = ({ path }: Route): boolean => path.startsWith('/api/v1/auth/');
const DOCUMENTED = ROUTES.filter((row) => !isOfConsole(row));
const namesOf = (rows: readonly Route[]): string[] => rows.map(({ method, path }) => `${method} ${path}`).sort();

test('every route has a heading and every heading a route, except those of the console, which are in a table', () => {
  const headings = [...sections.keys()].filter((heading) => ROUTE.test(heading));
  assert.deepEqual(headings.sort(), namesOf(DOCUMENTED));
  const rows = [...(sections.get('Signing in to the console') ?? '').matchAll(/^\| `([A-Z]+ \/\S+)` \|/gm)];
  assert.deepEqual(rows.map(([, route]) => route).sort(), namesOf(ROUTES.filter(isOfConsole)));
});

const isForAgents = ({ permission }: Route): boolean => permission !== null && PERMISSIONS[permission].agents;
function callersOf(row: Route): string {
  if (row.permission === null) return 'everybody';
  return isForAgents(row) ? 'agents and the administrator' : 'the administrator';
}

for (const row of DOCUMENTED) {
  const name = `${row.method} ${row.path}`;
  test(`${name}: its section names the callers, every field, the status and an example`, () => {
    const section = sections.get(name) ?? '';
    const words = quoted(section);
    const fields = [
      ...Object.keys(row.query.properties),
      ...Object.keys(row.body?.properties ?? {}),
      ...answerFields(row),
    ];
    assert.deepEqual(
      fields.filter((field) => !words.has(field)),
      [],
    );
    assert.match(section, new RegExp(`^- Who: ${callersOf(row)}[.;]`, 'm'));
    assert.match(section, new RegExp(`Response[,:] ${row.status}\\b`));
    if (row.permission !== null && !isForAgents(row)) assert.equal(words.has('ACCESS_DENIED'), true);
    assert.equal(
      blocks.some(({ heading, language }) => heading === name && language === 'sh'),
      true,
    );
  });
}

test('the page’s error table lists every code with its status, and no other', () => {
  const rows = [...(sections.get('Errors') ?? '').matchAll(/^\| `([A-Z_]+)` \| (\d+) \| \S.* \|$/gm)];
  assert.deepEqual(Object.fromEntries(rows.map(([, code = '', status]) => [code, Number(status)])), {
    ...ERROR_STATUS,
  });
});

test('every event type, result and action is named, and every named event type exists', () => {
  const words = quoted(page);
  for (const word of [...EVENT_TYPES, ...RESULTS, ...ACTIONS]) assert.equal(words.has(word), true, word);
  const nouns = new Set(EVENT_TYPES.map((event) => event.split('.')[0]));
  const events = [...words].filter(
    (word) => nouns.has(word?.split('.')[0] ?? '') && /^[a-z]+\.[a-z]+$/.test(word ?? ''),
  );
  assert.deepEqual(
    events.filter((event) => !EVENT_TYPES.some((known) => known === event)),
    [],
  );
});

test('the examples print the output that the page shows', async (t) => {
  const directory = temporaryDirectory(t);
  const { address, dataDir } = await startTestService(t);
  const { PATH = '' } = process.env;
  const respond = (_request: IncomingMessage, response: ServerResponse) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"status":"ok"}');
  const upstream = await startUpstream(t, respond, 'http');
  const env = {
    PATH,
    UPSTREAM: `http://127.0.0.1:${upstream.port}`,
    HOME: directory,
    LEASEHOLD_DATA_DIR: dataDir,
    LEASEHOLD_LISTEN: new URL(address).host,
    NO_PROXY: '*',
  };
  const shell = new Shell(t, temporaryDirectory(t), { cwd: directory, env });
  let count = 0;
  for (const [index, { heading, language, text }] of blocks.entries()) {
    if (language !== 'sh') continue;
    const next = blocks[index + 1];
    const expected = next?.heading === heading && next.language !== 'sh' ? next.text : '';
    assert.equal(withPlaceholders(await shell.run(text)), withPlaceholders(expected), heading);
    count += 1;
  }
  assert.equal(count, DOCUMENTED.length + 1);
});
