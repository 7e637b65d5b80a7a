/** Verification in threads: its progress, its priority, its cancellation, and concurrent changes. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LogLocation } from '../../src/store/store.ts';
import { authorizeVerification, readProgress } from '../../src/vault/verification/authorize.ts';
import { Verifier } from '../../src/vault/verification/verifier.ts';
import { scaled } from '../kit/scale.ts';
import { admin, inFrontOf, put, verify } from './fixture.ts';
import { openLongVault } from './verification-log.ts';

const ENTRIES = scaled(40_500, 200_500);
const LOOK_MS = scaled(3, 10);
/** Of one verification. */
const MOST_THREADS = Math.min(4, availableParallelism());
const LOWEST = 19;
/** Other systems have no priority per thread. */
const isLinux = process.platform === 'linux';

const vault = await openLongVault({ after }, ENTRIES);

/** How many threads of this process have the priority; SOURCE: proc(5), field 19 of `stat`. Linux. */
function countThreadsAt(priority: number): number {
  const stats = readdirSync('/proc/self/task').map((task) => {
    try {
      return readFileSync(`/proc/self/task/${task}/stat`, 'latin1');
    } catch {
      return ''; // it has ended since
    }
  });
  // The second field may contain any text, in parentheses; the third field follows it.
  return stats.filter((stat) => stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16] === String(priority)).length;
}

/** Entries checked so far; null where no verification runs. */
const checked = async (): Promise<number | null> => (await readProgress(vault, admin()))?.entriesChecked ?? null;
/** Starts a verification; resolves when it has checked entries. */
async function begin(signal: AbortSignal) {
  const verification = (await authorizeVerification(vault, admin()))(signal);
  let isOver = false;
  const end = (): void => {
    isOver = true;
  };
  verification.then(end, end);
  while (!isOver && ((await checked()) ?? 0) === 0) await sleep(1);
  // An object, because a promise would be awaited by the return.
  return { verification };
}
const stay = new AbortController().signal;

test('its progress is visible while it runs and grows to the total; there is no progress before and after', async () => {
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
  assert.equal(new Set(seen).size > 3, true, `${seen}`);
  assert.deepEqual(
    seen,
    seen.toSorted((a, b) => a - b),
  );
  assert.equal((seen.at(-1) ?? 0) <= ENTRIES, true);
});

test('its threads run at the lowest priority, and other threads keep theirs', async () => {
  const before = isLinux ? countThreadsAt(0) : 0;
  const { verification } = await begin(stay);
  const [lowered, kept] = isLinux ? [countThreadsAt(LOWEST), countThreadsAt(0)] : [1, 0];
  await verification;
  assert.equal(lowered >= 1 && lowered <= MOST_THREADS, true, `${lowered} threads`);
  assert.equal(kept >= before, true, `${kept} of ${before} threads kept their priority`);
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
  if (isLinux) assert.equal(countThreadsAt(LOWEST), 0);
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
    most = Math.max(most, isLinux ? countThreadsAt(LOWEST) : 1);
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
  const store = inFrontOf(vault.real, { logLocation: astrayOf(vault.real.logLocation) });
  const astray = { ...vault, verifier: new Verifier({ store, keys, clock }) };
  await assert.rejects(verify(astray), /unable to open database file|"not_there" does not exist/);
  assert.equal(await readProgress(astray, admin()), null);
  if (isLinux) assert.equal(countThreadsAt(LOWEST), 0);
  assert.equal((await verify(vault)).isValid, true);
});

// The last one: the log is longer afterwards.
test('entries appended while it runs are not verified; the next one verifies them', async () => {
  const { verification } = await begin(stay);
  for (let n = 0; n < 5; n++) await put(vault, `a/${n}`);
  assert.notEqual(await checked(), null, 'it was over before anything was appended');
  const found = await verification;
  assert.equal(found.isValid ? found.entries : found.reason, ENTRIES);
  const next = await verify(vault);
  assert.equal(next.isValid ? next.entries : next.reason, ENTRIES + 5);
});
