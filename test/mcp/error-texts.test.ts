// Standard error of the MCP server may contain texts from other users: none of them controls the terminal.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { standBetween } from '../client/fault-proxy.ts';
import { prepare, start, until } from './process.ts';

test('a name with colours and a line break is printed escaped', async (t) => {
  const { service, words, home } = await prepare(t, {}, {});
  const between = await standBetween(t, service);
  const session = {
    session_id: 'x',
    agent_name: '\u001b[31mRED\nsecond line\u202e',
    expires_at: '2099-01-01T00:00:00Z',
    expires_in: 3600,
  };
  const body = JSON.stringify({ data: session });
  const isSession = ({ method, path }: { method: string; path: string }) =>
    method === 'GET' && path === '/auth/session';
  between.next({ status: 200, headers: { 'content-type': 'application/json' }, body }, isSession);
  const asked = words.with(words.indexOf('--address') + 1, between.address);
  const { stderr } = start(t, asked, home);
  await until(() => stderr().includes('tools: '));
  assert.match(
    stderr(),
    /^leasehold mcp: acts as \\u001b\[31mRED\\u000asecond line\\u202e at http:\S+; tools: [^\n]*\n$/,
  );
});
