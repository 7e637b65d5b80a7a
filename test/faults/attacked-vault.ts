/** A running service whose log can be attacked and put back, with a fork and an earlier copy of its vault. */
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type Scope, temporaryDirectory, withScope } from '../kit/directory.ts';
import { isRolledBack } from '../kit/rolled-back.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import type { KnownLog } from './known-log.ts';
import type { Attack, AttackedLog } from './log-attacks.ts';

const DATABASE = 'leasehold.db';
/** Entries after the fork, more on the fork than on the log, so that its entries reach over the log's end. */
const OWN_ENTRIES = 100;
const FORK_ENTRIES = 150;

export interface AttackedVault {
  readonly log: AttackedLog;
  /** Verifies the attacked log; resolves to the number of the first break, or null if it is valid. */
  verify(attack: Attack): Promise<number | null>;
  /** Resolves to whether a service serves a copy of the attacked vault. */
  starts(attack: Attack): Promise<boolean>;
}

export async function openAttackedVault(scope: Scope, known: KnownLog): Promise<AttackedVault> {
  const directory = temporaryDirectory(scope);
  const [early, fork, own, original] = ['early', 'fork', 'own', 'original'].map((name) => join(directory, name));
  assert.ok(early && fork && own && original);
  cpSync(known.dataDir, early, { recursive: true });
  const forkedAt = countEntries(early);
  cpSync(early, own, { recursive: true });
  cpSync(early, fork, { recursive: true });
  await addEntries(own, OWN_ENTRIES);
  await addEntries(fork, FORK_ENTRIES);
  const stopped = join(directory, 'stopped');
  cpSync(own, stopped, { recursive: true });
  const service = await startTestService(scope, [], own);
  const attacker = attach(
    join(own, DATABASE),
    { own: join(original, DATABASE), fork: join(fork, DATABASE), early: join(early, DATABASE) },
    () => cpSync(own, original, { recursive: true }),
  );
  scope.after(() => attacker.close());
  const log = { entries: countEntries(own), forkedAt, earlyHead: forkedAt };
  return {
    log,
    async verify({ sql }) {
      attacker.exec(`BEGIN IMMEDIATE; ${sql}; COMMIT`);
      try {
        return await firstBreak(service);
      } finally {
        attacker.exec(RESTORE);
      }
    },
    starts: ({ sql }) => startsOnCopy(stopped, { fork, early }, sql),
  };
}

const RESTORE = `BEGIN IMMEDIATE;
  DELETE FROM audit_entries; INSERT INTO audit_entries SELECT * FROM own.audit_entries;
  DELETE FROM audit_head; INSERT INTO audit_head SELECT * FROM own.audit_head; COMMIT`;

async function firstBreak({ admin }: TestService): Promise<number | null> {
  const { status, body, text } = await admin.get('/api/v1/audit/verify');
  assert.equal(status, 200, text);
  return body.data.valid === true ? null : body.data.break_at_entry;
}

function attach(file: string, schemas: Readonly<Record<string, string>>, before: () => void = () => {}): DatabaseSync {
  const database = new DatabaseSync(file);
  // Everything is in the file, so that a copy of it is complete.
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  before();
  for (const [name, path] of Object.entries(schemas)) {
    database.prepare(`ATTACH ? AS ${name}`).run(path);
  }
  return database;
}

function startsOnCopy(stopped: string, schemas: { fork: string; early: string }, sql: string): Promise<boolean> {
  return withScope(async (scope) => {
    const copy = join(temporaryDirectory(scope), 'data');
    cpSync(stopped, copy, { recursive: true });
    const attacker = attach(join(copy, DATABASE), {
      own: join(stopped, DATABASE),
      fork: join(schemas.fork, DATABASE),
      early: join(schemas.early, DATABASE),
    });
    attacker.exec(`BEGIN IMMEDIATE; ${sql}; COMMIT`);
    attacker.close();
    return startTestService(scope, [], copy).then(
      async (service) => !(await isRolledBack(service)),
      () => false,
    );
  });
}

function countEntries(dataDir: string): number {
  const database = new DatabaseSync(join(dataDir, DATABASE), { readOnly: true });
  const row = database.prepare('SELECT max(seq) AS last FROM audit_entries').get();
  database.close();
  return Number(row?.['last']);
}

/** Stores values on another path each time, so that two copies differ from their first entry on. */
function addEntries(dataDir: string, count: number): Promise<void> {
  return withScope(async (scope) => {
    const service = await startTestService(scope, [], dataDir);
    for (let index = 0; index < count; index++) {
      const { status } = await service.admin.post('/api/v1/credentials', { path: `later/${index}`, value: 'v' });
      assert.equal(status, 201);
    }
    await service.stop();
  });
}
