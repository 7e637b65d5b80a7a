// docs/services.md shows the catalogue of services: its tables and notes are those of the data.
// `UPDATE_PAGE=1 npm test -- --tests-only test/conventions/services-page.test.ts` writes them again.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { SERVICES } from '../../src/core/catalogue/catalogue.ts';
import type { SdkVariable, ServiceDefinition } from '../../src/core/catalogue/definition.ts';
import type { PlacementFields, TargetFields } from '../../src/core/target.ts';
import { ROOT } from './source.ts';

const PAGE = path.join(ROOT, 'docs/services.md');
const code = (text: string): string => `\`${text}\``;

function targetText({ origin, paths, methods }: TargetFields): string {
  const limits = [...(paths === undefined ? [] : [paths.map(code).join(' ')]), ...(methods ?? []).map(code)];
  return [code(origin), ...limits].join(' ');
}

function placementText({ kind, name, template, username }: PlacementFields): string {
  if (kind === 'bearer') return '`Authorization: Bearer`';
  if (kind === 'basic') return username === undefined ? 'Basic, user and password' : `Basic, user ${code(username)}`;
  return kind === 'query' ? `query ${code(name ?? '')}` : code(`${name}: ${template ?? '{value}'}`);
}

function variableText({ name, holds, suffix, value, readBy }: SdkVariable): string {
  const held = { 'base-url': `=BASE_URL${suffix}`, key: '=KEY', fixed: `=${value}` }[holds];
  return code(name + held) + (readBy === 'example' ? ' (by convention)' : '');
}

function rowOf(service: ServiceDefinition): string {
  const { name, title, targets, placement, variables, unsupported } = service;
  const cells =
    unsupported === null
      ? [targets.map(targetText).join('<br>'), placementText(placement), variables.map(variableText).join('<br>')]
      : ['not supported yet', '', ''];
  return `| ${[code(name), title, ...cells].join(' | ')} |`.replaceAll(/\| {2}(?=\|)/g, '| ');
}

function noteLines({ name, notes, unsupported }: ServiceDefinition): string[] {
  return [...(unsupported === null ? [] : [unsupported]), ...notes].map((note) => `- ${code(name)}: ${note}`);
}

function deniedRow({ name, mints }: ServiceDefinition): string {
  const endpoints = mints.map(({ methods, path: pattern }) => code(`${methods?.join(',') ?? 'ANY'} ${pattern}`));
  return `| ${code(name)} | ${endpoints.join('<br>')} |`;
}

/** The part between two marks of the page, without the marks. */
function partOf(page: string, name: string): string {
  return page.split(`<!-- ${name} -->\n`)[1]?.split('<!-- end -->')[0] ?? assert.fail(`no part ${name}`);
}

const PARTS: Readonly<Record<string, string>> = {
  services: [
    '| name | service | targets | placement | variables |',
    '|---|---|---|---|---|',
    ...SERVICES.map(rowOf),
  ].join('\n'),
  notes: SERVICES.flatMap(noteLines).join('\n'),
  denied: [
    '| name | endpoints |',
    '|---|---|',
    ...SERVICES.filter(({ mints }) => mints.length > 0).map(deniedRow),
  ].join('\n'),
};

for (const [name, expected] of Object.entries(PARTS)) {
  test(`docs/services.md shows the ${name} of the catalogue`, () => {
    const page = readFileSync(PAGE, 'utf8');
    const part = partOf(page, name);
    if (process.env['UPDATE_PAGE'] === '1') {
      writeFileSync(
        PAGE,
        page.replace(`<!-- ${name} -->\n${part}`, () => `<!-- ${name} -->\n${expected}\n`),
      );
    } else assert.equal(part, `${expected}\n`);
  });
}

test('docs/services.md names every service that needs a host of the user', () => {
  const page = readFileSync(PAGE, 'utf8');
  const names = SERVICES.filter(({ needsHost }) => needsHost).map(({ name }) => code(name));
  assert.ok(page.includes(`Give your own host for ${names.join(' and ')}`), names.join());
});
