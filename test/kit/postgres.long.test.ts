// The kit itself: a real PostgreSQL that can be killed, a standby that can be promoted, a database for each test, and
// no remains afterwards, also if the process that started it was killed.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import postgres from 'postgres';
import { newDatabase } from './database.ts';
import { startPostgres } from './postgres.ts';
import { querySql } from './postmaster.ts';
import { childrenOf, haveExited, until } from './processes.ts';
import { startStandby } from './standby.ts';

const server = await startPostgres({ after }, { settings: { fsync: 'on', cluster_name: "it's" } });

/** A scope whose end the test decides. */
function openScope() {
  const cleanUps: (() => unknown)[] = [];
  const close = async (): Promise<void> => {
    for (const cleanUp of cleanUps.splice(0)) await cleanUp();
  };
  return { after: (cleanUp: () => unknown) => void cleanUps.push(cleanUp), close };
}

test('the server is PostgreSQL 18 and requires a password over TCP and its socket', async () => {
  const [row] = await server.query(
    `select version(), current_setting('fsync') as fsync, current_setting('cluster_name') as name`,
  );
  assert.match(String(row?.['version']), /^PostgreSQL 18\./);
  assert.deepEqual([row?.['fsync'], row?.['name']], ['on', "it's"]);
  await assert.rejects(querySql(server.url().replace(/:\w+@/, ':wrong@'), 'select 1'), { code: '28P01' });
  const { password, searchParams } = new URL(server.socketUrl().replace('@/', '@host/'));
  const path = join(searchParams.get('host') ?? '', '.s.PGSQL.5432');
  const client = postgres({ path, user: 'leasehold', pass: password, database: 'postgres', max: 1 });
  assert.deepEqual([...(await client`select inet_server_addr() as address`)], [{ address: null }]);
  await client.end();
});

test('committed rows survive killing all processes, on the same port', async () => {
  await server.query('create table kept (n int); insert into kept values (1)');
  const [port, all] = [server.port, [server.pid, ...childrenOf(server.pid)]];
  assert.ok(all.length > 3, `${all}`);
  await server.kill();
  assert.equal(haveExited(all), true);
  await assert.rejects(server.query('select 1'), { code: 'ECONNREFUSED' });
  await server.start();
  assert.equal(server.port, port);
  assert.deepEqual([...(await server.query('select n from kept'))], [{ n: 1 }]);
  await server.stop();
  assert.equal(server.isRunning, false);
  await server.start();
  assert.deepEqual([...(await server.query('select n from kept'))], [{ n: 1 }]);
});

test('a paused server responds when it is resumed', async () => {
  await server.pause();
  let isAnswered = false;
  const answer = server.query('select 1 as one').then((rows) => {
    isAnswered = true;
    return [...rows];
  });
  await assert.rejects(
    until(
      () => isAnswered,
      300,
      () => 'no answer',
    ),
    /no answer/,
  );
  server.resume();
  assert.deepEqual(await answer, [{ one: 1 }]);
});

test('a server that cannot start reports why', async (t) => {
  await assert.rejects(
    startPostgres(t, { settings: { shared_buffers: 'plenty' } }),
    /invalid value for parameter "shared_buffers"/,
  );
});

test('a synchronous standby has every commit, blocks commits while paused, and can be promoted', async (t) => {
  const primary = await startPostgres(t);
  await primary.query('create table kept (n int); insert into kept values (1)');
  const standby = await startStandby(t, primary, { name: 'second', isSynchronous: true });
  await standby.server.pause();
  let isCommitted = false;
  const commit = primary.query('insert into kept values (2)').then(() => {
    isCommitted = true;
  });
  await assert.rejects(
    until(
      () => isCommitted,
      300,
      () => 'not yet',
    ),
    /not yet/,
  );
  standby.server.resume();
  await commit;
  await primary.kill();
  await assert.rejects(standby.server.query('insert into kept values (3)'), { code: '25006' });
  await standby.promote();
  await standby.server.query('insert into kept values (3)');
  assert.deepEqual([...(await standby.server.query('select n from kept order by n'))], [{ n: 1 }, { n: 2 }, { n: 3 }]);
});

test('an asynchronous standby next to a synchronous one does not wait for it once promoted', async (t) => {
  const primary = await startPostgres(t);
  await startStandby(t, primary, { name: 'near', isSynchronous: true });
  const far = await startStandby(t, primary, { name: 'far', isSynchronous: false });
  const rows = await primary.query('select application_name, sync_state from pg_stat_replication order by 1');
  assert.deepEqual(
    rows.map((row) => Object.values(row)),
    [
      ['far', 'async'],
      ['near', 'sync'],
    ],
  );
  await far.promote();
  assert.deepEqual(
    [...(await far.server.query('show synchronous_standby_names'))],
    [{ synchronous_standby_names: '' }],
  );
  await far.server.query('create table its_own ()');
});

test('each scope has a separate database that is dropped with it despite open connections', async (t) => {
  const scope = openScope();
  const [first, second] = await Promise.all([newDatabase(scope), newDatabase(t)]);
  assert.notEqual(first, second);
  await querySql(first, 'create table only_here ()');
  await assert.rejects(querySql(second, 'table only_here'), { code: '42P01' });
  const client = postgres(first, { max: 1, onnotice: () => {} });
  await client`select 1`;
  await scope.close();
  await assert.rejects(querySql(first, 'select 1'), { code: '3D000' });
  await client.end({ timeout: 0 });
});

test('nothing is left when the scope ends, even of a killed or paused server', async () => {
  for (const before of ['kill', 'pause'] as const) {
    const scope = openScope();
    const ended = await startPostgres(scope);
    const all = [ended.pid, ...childrenOf(ended.pid)];
    await ended[before]();
    await scope.close();
    assert.equal(haveExited(all), true, before);
    assert.equal(existsSync(dirname(ended.dataDir)), false, before);
  }
});

for (const end of ['SIGKILL', 'end'] as const) {
  const claim =
    end === 'end'
      ? 'a file of tests that started a server for its databases ends it before it ends'
      : 'nothing is left of the server of a run when its runner is killed';
  test(claim, async () => {
    const script = `
      import { newDatabase, startSharedServer } from '${import.meta.resolve('./database.ts')}';
      import { querySql } from '${import.meta.resolve('./postmaster.ts')}';
      ${end === 'end' ? '' : 'Object.assign(process.env, (await startSharedServer()).environment);'}
      const [row] = await querySql(await newDatabase({ after() {} }), \`select
        current_setting('data_directory') as directory, pg_read_file('postmaster.pid') as file\`);
      console.log(row.directory + ':' + row.file.split('\\n')[0]);
      ${end === 'end' ? '' : 'setInterval(() => {}, 1000);'}`;
    const { LEASEHOLD_TEST_POSTGRES: _, ...environment } = process.env;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
      env: environment,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    const line = await new Promise<string>((resolve) => {
      child.stdout.once('data', (chunk) => resolve(String(chunk).trim()));
      child.stdout.once('end', () => resolve(''));
    });
    const [, directory = '', postmaster] = /^(.*leasehold-postgres-\w+)\/data:(\d+)$/.exec(line) ?? [];
    assert.notEqual(directory, '', line);
    if (end !== 'end') child.kill(end);
    await ended;
    const isClean = () => !existsSync(directory) && haveExited([Number(postmaster)]);
    if (end === 'end') assert.equal(isClean(), true, 'it waited for the end of its server');
    await until(isClean, 120_000, () => `${line} is still there`);
  });
}
