// The commands that a finished migration prints, run by a shell.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { MigrationRequest } from '../../src/server/migrate.ts';
import { formatSummary } from '../../src/server/migrate-report.ts';
import { parseAddress } from '../../src/store/postgres/address.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { configurationOf } from './migrations.ts';

test('the printed mv and start commands quote paths for a shell', (t) => {
  const [from, to] = ["it's old; $HOME", "it's new"].map((name) => join(temporaryDirectory(t), name));
  assert.ok(from !== undefined && to !== undefined);
  mkdirSync(from);
  for (const name of ['leasehold.db', 'leasehold.db-wal', 'root.key']) writeFileSync(join(from, name), '');
  const database = { kind: 'database', address: parseAddress('postgres://a@localhost/b') } as const;
  const linesOf = (places: Pick<MigrationRequest, 'from' | 'to'>): string[] =>
    formatSummary(
      { ...places, configuration: configurationOf(from), slotPassphrase: null, acceptsBrokenChain: false },
      { counts: new Map(), verification: { isValid: true, entries: 0, firstEntry: null, lastEntry: null } },
    )
      .split('\n')
      .map((line) => line.trim());
  const lines = linesOf({ from: { kind: 'directory', dir: from }, to: database });
  execFileSync('sh', ['-e', '-c', lines.filter((line) => line.startsWith('mv ')).join('\n')]);
  assert.deepEqual(readdirSync(from).sort(), ['leasehold.db.moved', 'leasehold.db.moved-wal', 'root.key']);
  const back = linesOf({ from: database, to: { kind: 'directory', dir: to } });
  const start = back.find((line) => line.startsWith('npm start')) ?? '';
  const words = execFileSync('sh', ['-c', `set -- ${start}\nprintf '%s\\n' "$@"`], { encoding: 'utf8' }).split('\n');
  assert.ok(words.includes(to) && words.includes(join(from, 'root.key')), start);
});
