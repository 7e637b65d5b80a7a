/**
 * `npm run torture [-- --minutes N] [--seed N] [--kinds NAMES] [--no-page]`: repeats rounds of every kind of fault in a
 * random order, until the time is over, Ctrl-C is pressed, or one fails. Then it writes the figures into
 * docs/reliability.md. After a failure it prints the round's seed and keeps the files.
 */
import { randomInt } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findMemoryDirectory } from '../../scripts/temporary-directory.ts';
import { Dice } from '../e2e/random.ts';
import { writeFigures } from './reliability-page.ts';
import { ACTIVITIES, type Campaign, type Figures } from './torture-activities.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string' },
    seed: { type: 'string' },
    kinds: { type: 'string' },
    'no-page': { type: 'boolean' },
  },
});

// As the service does.
process.umask(0o077);
const seed = Number(values.seed ?? randomInt(2 ** 31));
const limitMs = Number(values.minutes ?? Number.POSITIVE_INFINITY) * 60_000;
const names = values.kinds?.split(',') ?? Object.keys(ACTIVITIES);
const unknown = names.filter((name) => !Object.hasOwn(ACTIVITIES, name));
if (!(limitMs > 0) || !Number.isInteger(seed) || unknown.length > 0) {
  console.error(`--minutes and --seed are numbers; --kinds takes ${Object.keys(ACTIVITIES).join(', ')}.`);
  process.exit(2);
}

const startedAt = performance.now();
const elapsedMs = (): number => performance.now() - startedAt;
const directory = mkdtempSync(join(findMemoryDirectory() ?? tmpdir(), 'leasehold-torture-'));
// The parts that take a temporary directory of the tests get it here too.
process.env['TMPDIR'] = directory;
const dice = new Dice(seed);
let isStopped = false;
let hasFailed = false;
// WHY not once: Ctrl-C arrives from the terminal and from the launcher.
process.on('SIGINT', () => {
  isStopped = true;
});

/** Each prepares its campaign in its first round. */
function noCampaign(): Campaign | null {
  return null;
}

const activities = Object.entries(ACTIVITIES)
  .filter(([name]) => names.includes(name))
  .map(([name, activity]) => {
    const own = join(directory, name);
    mkdirSync(own);
    return { name, directory: own, ...activity, campaign: noCampaign(), usedShare: 0 };
  });

const figures = (): Figures => Object.assign({}, ...activities.map(({ campaign }) => campaign?.figures()));

/** One updated line on a terminal; elsewhere one line a minute. */
let shownAtMs = 0;
function show(name: string): void {
  const done = Object.entries(figures()).map(([what, count]) => `${count.toLocaleString('en')} ${what}`);
  const line = `${(elapsedMs() / 60_000).toFixed(1)} min, seed ${seed}, ${name}: ${done.join(', ')}`;
  if (process.stdout.isTTY) {
    process.stdout.write(`\r\x1b[K${line.slice(0, process.stdout.columns - 1)}`);
  } else if (elapsedMs() - shownAtMs > 60_000) {
    shownAtMs = elapsedMs();
    console.log(line);
  }
}

/** Runs one round of the activity that is furthest behind its share of the time. */
async function runRound(): Promise<void> {
  const next = activities.reduce((least, each) => (each.usedShare < least.usedShare ? each : least));
  const beganAt = performance.now();
  show(next.name);
  try {
    next.campaign ??= await next.begin(next.directory, dice.fork());
    await next.campaign.round();
  } catch (error) {
    // Ctrl-C also ended the services of this round.
    if (isStopped) return;
    hasFailed = true;
    console.error(`\nFailed after ${(elapsedMs() / 60_000).toFixed(1)} minutes, with --seed ${seed}, in ${next.name}.`);
    console.error(`The files are in ${next.directory}. ${next.campaign?.describe() ?? ''}\n`, error);
  }
  next.usedShare += (performance.now() - beganAt) / next.share;
}

while (!isStopped && !hasFailed && elapsedMs() < limitMs) await runRound();
for (const { campaign } of activities) await campaign?.end();
show('done');
if (hasFailed) {
  process.exitCode = 1;
} else {
  rmSync(directory, { recursive: true });
  if (!values['no-page']) writeFigures(figures(), elapsedMs(), seed);
  console.log(`\n${(elapsedMs() / 60_000).toFixed(1)} minutes without a failure.`);
}
