// The pages in docs/commands match the command table.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { allPages } from '../../scripts/command-docs.ts';
import { GROUPS } from '../../src/cli/table.ts';

const FOLDER = join(import.meta.dirname, '../../docs/commands');

test('every command has a page that matches the table; if not, run node scripts/launch.mjs scripts/command-docs.ts', () => {
  const pages = allPages(GROUPS);
  assert.deepEqual(readdirSync(FOLDER).sort(), [...pages.keys()].sort());
  for (const [name, text] of pages) assert.equal(readFileSync(join(FOLDER, name), 'utf8'), text, name);
});
