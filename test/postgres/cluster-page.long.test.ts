// docs/cluster.md, executed: its SQL and shell blocks create a vault on a separate PostgreSQL, in order, and its tables
// are compared with the server and the source. So are the lost node and the start errors of docs/operations.md.

import assert from 'node:assert/strict';
import { createPrivateKey } from 'node:crypto';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Connection } from '../../src/store/postgres/connection.ts';
import { parseAddress } from '../../src/store/postgres/database-url.ts';
import { ROOT } from '../conventions/source.ts';
import { type Block, readBlocks } from '../e2e/markdown.ts';
import { readSteps } from '../e2e/page.ts';
import { Shell, startInBackground } from '../e2e/shell.ts';
import { createClient, verifyAs } from '../kit/client.ts';
import { newDatabase } from '../kit/database.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { findPort } from '../kit/port.ts';
import { startPostgres } from '../kit/postgres.ts';

const PAGE = readFileSync(join(ROOT, 'docs/cluster.md'), 'utf8');
const OPERATIONS = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8');
const blocks = readBlocks(PAGE);
const ROLES = readFileSync(join(ROOT, 'deploy/postgres/roles.sql'), 'utf8');

function only(language: string, words: string): Block {
  const found = blocks.filter((block) => block.language === language && block.text.includes(words));
  const [block] = found;
  assert.ok(block !== undefined && found.length === 1, `one block of ${language} with ${words}`);
  return block;
}

/** The first cell of each row of a table, and the other cells. */
function tableUnder(page: string, heading: string, title: string): string[][] {
  const section = page.split(/^## /m).find((part) => part.startsWith(heading)) ?? '';
  const [, rows = ''] = section.split(`| ${title} |`);
  const lines = rows.split('\n\n')[0]?.split('\n').slice(2) ?? [];
  return lines.map((line) => line.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, '')));
}

test('the page’s roles are those of deploy, and every block has a language that says whether it is executed', () => {
  const words = (text: string): string => text.replaceAll(/^--.*\n/gm, '').trim();
  assert.equal(words(only('sql', 'CREATE ROLE').text), words(ROLES));
  assert.deepEqual(new Set(blocks.map(({ language }) => language)), new Set(['console', 'sh', 'sql']));
});

test('the pages’ commands create a vault whose service role owns nothing, an agent with its own key, and another node', async (t) => {
  const server = await startPostgres(t);
  const etc = temporaryDirectory(t);
  const home = temporaryDirectory(t);
  const listen = `127.0.0.1:${await findPort()}`;
  const { PATH = '' } = process.env;
  const env = {
    PATH,
    HOME: home,
    ETC: etc,
    LEASEHOLD_LISTEN: listen,
    NO_PROXY: '*',
    NEW_NODE: join(home, 'new-node'),
    AGENT: 'deploy-bot',
    npm_config_update_notifier: 'false',
  };
  const place = { cwd: ROOT, env };
  const shell = new Shell(t, temporaryDirectory(t), place);

  assert.equal(await shell.run(only('sh', 'openssl rand').text), '');
  const rootKey = readFileSync(join(etc, 'root.key'), 'utf8');
  assert.match(await shell.run(only('sh', 'openssl rand').text), /root\.key: cannot overwrite existing file/);
  assert.equal(readFileSync(join(etc, 'root.key'), 'utf8'), rootKey, 'a second paste keeps the root key');
  for (const statement of only('sql', 'CREATE ROLE').text.split(';\n')) {
    await server.query(statement.replace(/:'(\w+)_password'/, "'of the $1'"));
  }
  for (const role of ['owner', 'node']) {
    const url = `postgres://leasehold_${role}:of%20the%20${role}@127.0.0.1:${server.port}/leasehold`;
    writeFileSync(join(etc, `${role}.url`), `${url}\n`, { mode: 0o600 });
  }
  const said = await shell.run(only('sh', 'leasehold schema').text);
  assert.match(
    said,
    /^PostgreSQL at .*, database leasehold, has schema \d+: .* done\.\nThe role leasehold_node has the privileges that a node needs/,
  );
  const service = await startInBackground(t, only('sh', 'npm start').text, 'Ctrl-C stops', place);
  assert.doesNotMatch(service.printed, /WARNING/);

  const token = readFileSync(join(etc, 'admin.token'), 'utf8').trim();
  await shell.run(`URL=http://${listen}; TOKEN=${token}; cd "$ETC"`);
  const registered = await shell.run(only('sh', 'public_key').text);
  assert.equal(JSON.parse(registered).data.name, 'deploy-bot');
  const key = createPrivateKey(readFileSync(join(etc, 'agent.pem')));
  assert.match(await shell.run(only('sh', 'public_key').text), /agent\.pem: cannot overwrite existing file/);
  assert.equal((await verifyAs(`http://${listen}`, 'deploy-bot', key)).status, 200);

  assert.deepEqual([...(await server.query(only('sql', 'pg_stat_replication').text, 'leasehold'))], []);
  const [size] = await server.query(only('sql', 'pg_size_pretty').text, 'leasehold');
  assert.match(String(size?.['log']), /^\d+ kB$/);
  assert.equal((await createClient(`http://${listen}`, token).get('/api/v1/audit/verify')).body.data.valid, true);

  await service.end('SIGKILL');
  const [startAnother, ...steps] = readSteps('docs/operations.md').filter(
    ({ heading }) => heading === 'A node is lost',
  );
  assert.ok(startAnother !== undefined && steps.length > 0);
  const another = await startInBackground(t, startAnother.commands, 'Ctrl-C stops', place);
  await shell.run(`cd '${ROOT}'; PATH="$PWD/scripts:$PATH"`);
  for (const { commands, output } of steps) assert.equal(await shell.run(commands), output, commands);
  assert.equal(await another.end('SIGTERM'), 0);
});

test('each connection has the settings that the page lists', async (t) => {
  const rows = tableUnder(PAGE, 'Settings that matter', 'setting | value | so that');
  assert.ok(rows.length >= 5);
  const connection = await Connection.open(parseAddress(await newDatabase(t)), 'reading');
  for (const [name = '', value] of rows) {
    const [row] = await connection.query`SELECT current_setting(${name.replaceAll('`', '')}) AS value`;
    assert.equal(row?.['value'], value, name);
  }
  connection.close();
});

test('the source contains every start error that docs/operations.md lists', () => {
  const source = globSync('src/{server,store,vault,ledger,platform}/**/*.ts', { cwd: ROOT })
    .map((name) => readFileSync(join(ROOT, name), 'utf8'))
    .join('\n');
  const rows = tableUnder(OPERATIONS, 'Startup errors', 'message | remedy');
  assert.ok(rows.length > 15);
  for (const [said = ''] of rows) {
    for (const [, quoted = ''] of said.matchAll(/`([^`]+)`/g)) {
      // What PostgreSQL itself says, by its code.
      if (/\(\w{5}\)$/.test(quoted)) continue;
      for (const part of quoted.split('…').map((text) => text.replace(/^[ (,:]+|[ (,:]+$/g, ''))) {
        assert.ok(part.length < 6 || source.includes(part), `${quoted}: ${part}`);
      }
    }
  }
});

test('every flag that the pages name is a flag of a program', () => {
  const programs = globSync('{src/server,src/cli/**,scripts}/*.{ts,mjs}', { cwd: ROOT }).map((name) =>
    readFileSync(join(ROOT, name), 'utf8'),
  );
  const prose = `${PAGE}\n${OPERATIONS}`.replaceAll(/```[\s\S]*?```/g, '');
  const named = new Set([...prose.matchAll(/`--([a-z-]+)/g)].map(([, flag = '']) => flag));
  const known = programs.join('\n');
  assert.ok(named.size > 8);
  assert.deepEqual(
    [...named].filter((flag) => !new RegExp(`'${flag}'|\\b${flag}: `).test(known)),
    [],
  );
});
