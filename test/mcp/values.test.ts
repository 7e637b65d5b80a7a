// The bare value is returned to the model only if the operator enabled it, and the tool then says what that means.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { quote } from '../../src/mcp/untrusted.ts';
import { connect, formsOf, shows, startStage, TRANSPORTS, VALUE } from './fixture.ts';

for (const over of TRANSPORTS) {
  test(`over ${over} the tool does not exist unless it is enabled`, async (t) => {
    const { mcp } = await startStage(t);
    const { client, use, transcript } = await connect(t, mcp, over);
    const { tools } = await client.listTools();
    assert.equal(
      tools.some(({ name }) => name === 'retrieve_credential'),
      false,
    );
    await assert.rejects(use('retrieve_credential', { path: 'prod/db/password' }), /not found/);
    assert.equal(shows(transcript()), false);
  });

  test(`over ${over} once enabled it returns the value, says so, and its lease ends with the server`, async (t) => {
    const { mcp, agent } = await startStage(t, { allowsValues: true });
    const { client, use, refusal, transcript } = await connect(t, mcp, over);
    const { tools } = await client.listTools();
    const tool = tools.find(({ name }) => name === 'retrieve_credential');
    assert.match(tool?.description ?? '', /THE VALUE BECOMES PART OF THIS CONVERSATION/);
    const { value, lease_id } = await use('retrieve_credential', { path: 'prod/db/password', ttl_seconds: 60 });
    assert.equal(value, VALUE);
    // The search, which finds no value in other tests, finds this one.
    assert.equal(shows(transcript()), true);
    assert.match(await refusal('retrieve_credential', { path: 'other/x' }), /^ACCESS_DENIED: /);
    assert.equal(await mcp.close(), 0);
    assert.equal((await agent.leases.read(String(lease_id))).status, 'revoked');
  });
}

test('the search for a value finds it in every encoding', () => {
  const bytes = Buffer.from(VALUE);
  for (const text of [
    VALUE,
    JSON.stringify({ a: VALUE }),
    JSON.stringify(JSON.stringify(`${VALUE}"`)),
    bytes.toString('base64'),
    Buffer.from(`x${VALUE}`).toString('base64'),
    Buffer.from(`xy${VALUE}z`).toString('base64'),
    Buffer.from(`x${VALUE}`).toString('base64url'),
    encodeURIComponent(VALUE),
    bytes.toString('hex'),
  ]) {
    assert.equal(shows(text), true, text);
  }
  assert.equal(shows('nothing'), false);
  assert.equal(new Set(formsOf(VALUE)).size > 6, true);
});

test('texts of other users are quoted: truncated, and unable to end the quotation', () => {
  assert.equal(quote('plain ünïcode 日本'), '"plain ünïcode 日本"');
  assert.equal(quote('a"b\\c<d>`e'), '"a\\u{22}b\\u{5c}c\\u{3c}d\\u{3e}\\u{60}e"');
  assert.equal(
    quote(`\u0000\u009b\u200b\u2028${String.fromCharCode(0xd800)}\u{e0041}`),
    '"\\u{0}\\u{9b}\\u{200b}\\u{2028}\\u{d800}\\u{e0041}"',
  );
  assert.equal(quote('😀'.repeat(300)), `"${'😀'.repeat(199)}…"`);
});
