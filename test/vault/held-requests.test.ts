// The memory for the bodies of requests that wait for an approval. SOURCE: SECURITY.md, P8.

import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import type { ApprovalHolds } from '../../src/vault/approvals/approval-holds.ts';
import type { ApprovalPending } from '../../src/vault/approvals/approval-requests.ts';
import { HeldUses } from '../../src/vault/approvals/held-requests.ts';
import { parseMethod } from '../../src/vault/use/target.ts';
import { parseUrl } from '../../src/vault/use/upstream-url.ts';
import type { AdmittedRequest } from '../../src/vault/use/use-operations.ts';
import type { ReceivedRequest } from '../../src/vault/use/uses.ts';
import { unchecked } from './agents-fixture.ts';
import { toPath } from './fixture.ts';

const MIB = 1024 * 1024;
const UNDECIDED = { approval: 'needed' } as ApprovalPending;
/** Every request is approved at once, so that its body counts until the test releases it. */
const approved = {
  hold: async () => ({}) as AdmittedRequest,
} as unknown as ApprovalHolds;

test('waiting bodies have 16 MiB of one agent and 64 MiB in all, and one that was released or rejected frees its share', async () => {
  const uses = new HeldUses(approved);
  const request = { method: parseMethod('POST', 'method'), url: parseUrl('https://api.example.com/v1') };
  const hold = (agent: string, bytes = MIB) => {
    const call: ReceivedRequest = {
      path: toPath('llm/key'),
      request,
      ttlSeconds: null,
      purpose: null,
      headers: [],
      openBody: () => Readable.from([Buffer.alloc(bytes)]),
      bodyLength: bytes,
      isUpgrade: false,
      baseUrl: null,
    };
    return uses.hold(unchecked('lhs_token', agent), UNDECIDED, call);
  };
  const fill = (agent: string) => Promise.all(Array.from({ length: 16 }, () => hold(agent)));
  const [first] = await fill('one');
  await assert.rejects(hold('one', 1), { code: 'UNAVAILABLE' });
  for (const agent of ['two', 'three', 'four']) await fill(agent);
  await assert.rejects(hold('five', 1), { code: 'UNAVAILABLE' });
  first?.release();
  await assert.rejects(hold('five', MIB + 1), { code: 'PAYLOAD_TOO_LARGE' });
  await hold('five');
  await assert.rejects(hold('five', 1), { code: 'UNAVAILABLE' });
});
