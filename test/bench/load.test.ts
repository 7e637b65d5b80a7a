// The command line of the benchmark, its load generators and the retrievals that they sample.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseArguments, USAGE } from '../../bench/arguments.ts';
import { describeGenerator, findWrk } from '../../bench/generator.ts';
import { runPaced, runRetrievals, runUses } from '../../bench/loads.ts';
import { benchKey, benchPath, benchPolicy, benchPublicKey, benchToken, sampleRetrievals } from '../../bench/targets.ts';
import { parseWrk } from '../../bench/wrk.ts';
import { parsePublicKey } from '../../src/crypto/signatures.ts';
import { temporaryDirectory } from '../kit/directory.ts';

test('the report names the generator', (t) => {
  const directory = temporaryDirectory(t);
  assert.equal(findWrk(`/nowhere:${directory}`), null);
  const wrk = join(directory, 'wrk');
  writeFileSync(wrk, '');
  assert.equal(findWrk(`/nowhere:${directory}`), wrk);
  assert.equal(describeGenerator(wrk), 'wrk');
  assert.match(describeGenerator(null), /wrk is not installed/);
});

const WRK_OUTPUT = `enough
Running 10m test @ http://127.0.0.1:7700
  1 threads and 64 connections
  31365 requests in 2.00s, 15.10MB read
Requests/sec:  15652.95
Transfer/sec:      7.54MB

{"answered":31365,"microseconds":2003775,"p50":3360,"p99":17767,"rejected":0,"failed":0}
`;

test('the output of wrk is parsed, and an unexpected response is an error', () => {
  const { answered, perSecond, p50Ms, p99Ms } = parseWrk(WRK_OUTPUT);
  assert.deepEqual([answered, p50Ms, p99Ms], [31365, 3.36, 17.767]);
  assert.ok(Math.abs(perSecond - 15652.9) < 0.1);
  for (const error of ['rejected', 'failed']) {
    assert.throws(() => parseWrk(WRK_OUTPUT.replace(`"${error}":0`, `"${error}":3`)), /of 31365 requests/);
  }
  assert.throws(() => parseWrk('unable to connect'), /unexpected output of wrk: unable to connect/);
});

test('a load sends the requests it was asked for, and fails after another status', async (t) => {
  let [requests, status] = [0, 200];
  const server = createServer((request, response) => {
    requests += 1;
    assert.match(request.headers.authorization ?? '', /^Bearer lhs_/);
    response.writeHead(status, { 'content-length': 2 }).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const job = { target: { address: `http://127.0.0.1:${port}`, credentials: 3, agents: 2 }, connections: 4 };
  const closed = await runRetrievals({ kind: 'retrievals', ...job, amount: 50 });
  assert.deepEqual([closed.answered, requests], [50, 50]);
  const paced = await runPaced({ kind: 'paced', ...job, perSecond: 1000, seconds: 0.05 });
  assert.deepEqual([paced.answered, requests], [50, 100]);
  const call = { path: 'a', method: 'GET', url: 'https://127.0.0.1/' };
  const uses = await runUses({ kind: 'uses', ...job, amount: 20, token: benchToken(0), call });
  assert.deepEqual([uses.answered, requests], [20, 120]);
  status = 403;
  await assert.rejects(runRetrievals({ kind: 'retrievals', ...job, amount: 50 }), /status 403 instead of 200/);
});

test('retrievals are sampled from the credentials and agents of the target', () => {
  const samples = sampleRetrievals({ address: '', credentials: 3, agents: 2 }, 100);
  assert.equal(samples.length, 100);
  assert.deepEqual(new Set(samples.map(({ token }) => token)), new Set([benchToken(0), benchToken(1)]));
  assert.equal(new Set(samples.map(({ path }) => path)).size, 3);
  assert.equal(sampleRetrievals({ address: '', credentials: 3, agents: 2 }, 1e9).length, 32_000);
});

test('fixtures follow from their number, and the service accepts them', () => {
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

test('an unknown flag is an error, and the help describes every flag', () => {
  const values = parseArguments(['--quick', '--only', 'log']);
  assert.deepEqual([values.quick, values.only], [true, 'log']);
  assert.throws(() => parseArguments(['--quik']), /Unknown option '--quik'/);
  for (const flag of ['quick', 'trial', 'postgres', 'only', 'json', 'page']) {
    assert.ok(USAGE.includes(`  --${flag} `), flag);
  }
});
