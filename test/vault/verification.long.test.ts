/** Verification in threads: its progress, its priority, its cancellation, and concurrent changes. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LogLocation } from '../../src/store/stored-data.ts';
import { authorizeVerification, readProgress } from '../../src/vault/audit/audit.ts';
import { Verifier } from '../../src/vault/audit/verification/verifier.ts';
import { scaled } from '../kit/scale.ts';
import { admin, inFrontOf, put, verify } from './fixture.ts';
import { openLongVault } from './verification-log.ts';

const ENTRIES = scaled(40_500, 200_500);
const LOOK_MS = scaled(3, 10);
/** The maximum number of threads of one verification. */
const MOST_THREADS = Math.min(4, availableParallelism());
const LOWEST = 19;
const TRIES = 20;
/** Other systems have no priority per thread. */
const isLinux = process.platform === 'linux';

const vault = await openLongVault({ after }, ENTRIES);

/** The threads of this process and their priorities; SOURCE: proc(5), field 19 of `stat`. Linux. */
function readPriorities(): Map<string, number> {
  const priorities = new Map<string, number>();
  for (const task of readdirSync('/proc/self/task')) {
    try {
      const stat = readFileSync(`/proc/self/task/${task}/stat`, 'latin1');
      // The second field may contain any text, in parentheses; the third field follows it.
      priorities.set(task, Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]));
    } catch {
      // It has ended since.
    }
  }
  return priorities;
}

const countLowered = (): number => [...readPriorities().values()].filter((priority) => priority === LOWEST).length;

/** Entries checked so far; null where no verification runs. */
const checked = async (): Promise<number | null> => (await readProgress(vault, admin()))?.entriesChecked ?? null;
/** Starts a verification; resolves when it has checked entries, but less than half of them. */
async function begin(signal: AbortSignal) {
  for (let tries = 0; tries < TRIES; tries++) {
    const verification = (await authorizeVerification(vault, admin()))(signal);
    let isOver = false;
    const end = (): void => {
      isOver = true;
    };
    verification.then(end, end);
    let at = await checked();
    for (; !isOver && (at ?? 0) === 0; at = await checked()) await sleep(1);
    // An object, because a promise would be awaited by the return.
    if (at !== null && at > 0 && at < ENTRIES / 2) return { verification };
    // On a busy machine this thread may have waited until it was nearly over.
    await verification;
  }
  return assert.fail('no verification was seen before its half');
}
const stay = new AbortController().signal;

/** Watches a verification; resolves to the numbers of checked entries that were seen. */
async function watch(): Promise<number[]> {
  assert.equal(await readProgress(vault, admin()), null);
  const startedAfter = vault.clock.now();
  const { verification } = await begin(stay);
  const seen: number[] = [];
  for (;;) {
    const progress = await readProgress(vault, admin());
    if (progress === null) break;
    const { entriesChecked, entriesTotal, startedAt } = progress;
    assert.equal(entriesTotal, ENTRIES);
    assert.equal(startedAt >= startedAfter && startedAt <= vault.clock.now(), true);
    seen.push(entriesChecked);
    // WHY: under constant requests the threads pause.
    await sleep(LOOK_MS);
  }
  assert.equal((await verification).isValid, true);
  assert.deepEqual(
    seen,
    seen.toSorted((a, b) => a - b),
  );
  assert.equal((seen.at(-1) ?? 0) <= ENTRIES, true);
  return seen;
}

test('its progress is visible only while it runs, and grows to the total', async () => {
  let seen: number[] = [];
  // On a busy machine this thread may look too seldom to see it grow.
  for (let tries = 0; tries < TRIES && new Set(seen).size <= 3; tries++) seen = await watch();
  assert.equal(new Set(seen).size > 3, true, `${seen}`);
});

test('its threads run at the lowest priority, and other threads keep theirs', async () => {
  const before = isLinux ? readPriorities() : new Map<string, number>();
  const { verification } = await begin(stay);
  const [lowered, now] = isLinux ? [countLowered(), readPriorities()] : [1, before];
  await verification;
  assert.equal(lowered >= 1 && lowered <= MOST_THREADS, true, `${lowered} threads`);
  // WHY not their number: a thread that writes the database may end at any time.
  const altered = [...before].filter(([task, priority]) => now.has(task) && now.get(task) !== priority);
  assert.deepEqual(altered, [], 'other threads got another priority');
});

test('it ends soon after its caller disconnects, with its threads, and another one can follow', async () => {
  const leaving = new AbortController();
  const { verification } = await begin(leaving.signal);
  leaving.abort(new Error('gone'));
  await assert.rejects(verification, /gone/);
  const at = (await checked()) ?? 0;
  assert.equal(at < ENTRIES / 2, true, `${at} were checked`);
  let last = at;
  while (last !== null) {
    assert.equal(last < ENTRIES, true);
    const now = await checked();
    if (now === null) break;
    last = now;
  }
  if (isLinux) assert.equal(countLowered(), 0);
  assert.equal(last < ENTRIES, true, `${last} were checked`);
  assert.equal((await verify(vault)).isValid, true);
});

test('two concurrent calls run one verification after the other, never two in parallel', async () => {
  const { verification } = await begin(stay);
  const second = verify(vault);
  let most = 0;
  let isOver = false;
  void second.then(() => (isOver = true));
  while (!isOver) {
    most = Math.max(most, isLinux ? countLowered() : 1);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.deepEqual(await verification, await second);
  assert.equal(most >= 1 && most <= MOST_THREADS, true, `${most} threads`);
});

/** A path without a log. */
function astrayOf(location: LogLocation): LogLocation {
  return location.kind === 'sqlite'
    ? { ...location, file: `${location.file}.not-there` }
    : { ...location, address: { ...location.address, database: 'not_there' } };
}

test('a verification whose threads cannot read fails, and the next one is not affected', async () => {
  const { keys, clock } = vault;
  const store = inFrontOf(vault.real, {
    locateLog: async () => astrayOf(await vault.real.locateLog()),
  });
  const astray = { ...vault, verifier: new Verifier({ store, keys, clock }) };
  await assert.rejects(verify(astray), /unable to open database file|"not_there" does not exist/);
  assert.equal(await readProgress(astray, admin()), null);
  if (isLinux) assert.equal(countLowered(), 0);
  assert.equal((await verify(vault)).isValid, true);
});

// The last one: the log is longer afterwards.
test('entries appended while it runs are not verified; the next one verifies them', async () => {
  let entries = ENTRIES;
  let isRunning = false;
  // On a busy machine it may be over before anything was appended.
  for (let tries = 0; tries < TRIES && !isRunning; tries++) {
    const { verification } = await begin(stay);
    for (let n = 0; n < 5; n++) await put(vault, `a/${n}`);
    isRunning = (await checked()) !== null;
    const found = await verification;
    assert.equal(found.isValid ? found.entries : found.reason, entries);
    entries += 5;
  }
  assert.equal(isRunning, true, 'it was over before anything was appended');
  const next = await verify(vault);
  assert.equal(next.isValid ? next.entries : next.reason, entries);
});
