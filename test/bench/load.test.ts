// Where a load comes from, what it asks for, and how what wrk says is read.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseArguments, USAGE } from '../../bench/arguments.ts';
import { describeGenerator, findWrk } from '../../bench/generator.ts';
import { pickRetrievals } from '../../bench/sampling.ts';
import { benchKey, benchPath, benchPolicy, benchPublicKey, benchToken } from '../../bench/targets.ts';
import { toResult } from '../../bench/wrk-load.ts';
import { parsePublicKey } from '../../src/crypto/ed25519.ts';

test('the report says which generator it was, and why', () => {
  const found = (there: string) => findWrk('/a:/b', (file) => file === there);
  assert.deepEqual([found(''), found('/b/oha'), found('/b/wrk')], [null, null, '/b/wrk']);
  assert.match(describeGenerator('/b/wrk'), /^wrk; /);
  assert.match(describeGenerator(null), /^autocannon \(wrk is not installed\); /);
});

const WRK_SAID = `enough
Running 10m test @ http://127.0.0.1:7700
  1 threads and 64 connections
  31365 requests in 2.00s, 15.10MB read
Requests/sec:  15652.95
Transfer/sec:      7.54MB

{"answered":31365,"microseconds":2003775,"p50":3360,"p99":17767,"p999":36984,"refused":0,"failed":0}
`;

test('what wrk printed is read, and an answer that was not wanted is an error', () => {
  const { answered, perSecond, p50Ms, p99Ms, p999Ms, busy } = toResult(WRK_SAID, 0.5);
  assert.deepEqual([answered, p50Ms, p99Ms, p999Ms], [31365, 3.36, 17.767, 36.984]);
  assert.ok(Math.abs(perSecond - 15652.9) < 0.1 && Math.abs(busy - 0.2495) < 0.001);
  for (const what of ['refused', 'failed']) {
    assert.throws(() => toResult(WRK_SAID.replace(`"${what}":0`, `"${what}":3`), 1), /of 31365 answers/);
  }
  assert.throws(() => toResult('unable to connect', 1), /wrk said: unable to connect/);
});

test('a load asks at random, as many for each connection, and of no more credentials and agents than there are', () => {
  const picked = pickRetrievals({ address: '', credentials: 3, agents: 2 }, { amount: 100, connections: 64 });
  assert.equal(picked.length, 128);
  assert.deepEqual(new Set(picked.map(({ token }) => token)), new Set([benchToken(0), benchToken(1)]));
  assert.equal(new Set(picked.map(({ path }) => path)).size, 3);
  assert.equal(
    pickRetrievals({ address: '', credentials: 3, agents: 2 }, { amount: 1e9, connections: 64 }).length,
    32_000,
  );
});

test('what fixtures are made of follows from the number alone, and is what the service takes', () => {
  assert.equal(benchPath(1234), 'bench/team-24/service-1234/api-key');
  assert.match(benchToken(7), /^lhs_[\w-]{43}$/);
  assert.equal(benchToken(7), benchToken(7));
  assert.notEqual(benchToken(7), benchToken(8));
  assert.equal(parsePublicKey(benchPublicKey(3)), benchPublicKey(3));
  assert.equal(benchKey(3).asymmetricKeyType, 'ed25519');
  assert.equal(benchPolicy(0).resources[0], 'bench/*');
  const lengths = (from: number) =>
    benchPolicy(from)
      .resources.slice(-2)
      .map(({ length }) => length);
  assert.deepEqual(lengths(0), lengths(9999));
});

test('a flag that is none is named, and help tells of every one that is', () => {
  assert.deepEqual(parseArguments(['--quick', '--only', 'log']).only, 'log');
  assert.throws(() => parseArguments(['--quik']), /Unknown option '--quik'/);
  assert.throws(() => parseArguments(['--curves=some']), /--curves takes yes or no/);
  for (const flag of ['quick', 'trial', 'only', 'curves', 'json', 'write'])
    assert.ok(USAGE.includes(`--${flag}`), flag);
});
