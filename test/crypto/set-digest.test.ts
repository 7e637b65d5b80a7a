// The digest of agents and policies. SOURCE: docs/formats.md, "State in the log".
import assert from 'node:assert/strict';
import { createHmac, createSecretKey } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { SetDigest } from '../../src/crypto/row-mac.ts';
import { runs } from '../kit/property.ts';

const key = createSecretKey(Buffer.alloc(32, 7));
const mac = (...fields: readonly string[]): Buffer =>
  createHmac('sha256', Buffer.alloc(32, 7)).update(JSON.stringify(fields)).digest();

/** The digest as docs/formats.md defines it. */
function expected(members: ReadonlyMap<string, string>): string {
  const sum = Buffer.alloc(32);
  for (const [name, value] of members) {
    for (const [at, byte] of mac('leasehold-control-member-v1', name, value).entries()) sum[at] = (sum[at] ?? 0) ^ byte;
  }
  return mac('leasehold-control-set-v1', String(members.size), sum.toString('base64')).toString('base64');
}

test('updated step by step it equals the digest of the set, in any order, and different sets differ', () => {
  const names = fc.constantFrom('agent:a', 'agent:b', 'policy:a', 'policy:b', 'policy:c');
  const steps = fc.array(fc.tuple(names, fc.option(fc.constantFrom('1', '2', '3'))), { maxLength: 30 });
  fc.assert(
    fc.property(steps, (list) => {
      const members = new Map<string, string>();
      const digest = new SetDigest(key);
      const seen = new Map<string, string>();
      for (const [name, value] of list) {
        if (value === null) digest.delete(name);
        else digest.put(name, value);
        if (value === null) members.delete(name);
        else members.set(name, value);
        assert.equal(digest.toString(), expected(members));
        seen.set(JSON.stringify([...members].sort()), digest.toString());
      }
      assert.equal(new SetDigest(key, [...members].reverse()).toString(), digest.toString());
      assert.equal(new Set(seen.values()).size, seen.size);
    }),
    runs(300),
  );
});
