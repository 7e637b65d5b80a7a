/**
 * `npm run mutation [-- --sample N --seed N --of TEXT]` applies small faults to the code that decides, one at a time,
 * and runs the tests of its layer: a mutant that no test detects survives. Reports how many were killed per file, and
 * which survived.
 */
import { spawn } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { HARDENING } from './flags.mjs';
import { findMutants, type Mutant } from './mutants.ts';
import { processorSeconds } from './processor.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
const GROUP = path.join(import.meta.dirname, 'test-group.ts');
/** Time-out as a multiple of the time that the tests take without a fault. */
const HANGS_AFTER_TIMES = 10;
/** Default number of mutants per layer. */
const SAMPLE = 60;

interface Layer {
  readonly sources: readonly string[];
  /** The tests in the order in which they run: the most likely to fail first. */
  readonly tests: readonly string[];
}

const LAYERS: readonly Layer[] = [
  {
    sources: ['src/core/pattern.ts', 'src/vault/policies/*.ts'],
    tests: ['test/core/{decision,pattern,policy,decide,operation}.test.ts', 'test/core/history/*.test.ts'],
  },
  { sources: ['src/crypto/*.ts'], tests: ['test/crypto/*.test.ts'] },
  {
    sources: ['src/ledger/ledger.ts'],
    tests: ['test/ledger/{ledger,fair-queue,failing,clock}.test.ts', 'test/vault/idempotency.test.ts'],
  },
];

const filesOf = (patterns: readonly string[]): string[] =>
  patterns.flatMap((pattern) =>
    globSync(pattern, { cwd: ROOT })
      .map((name) => path.join(ROOT, name))
      .sort(),
  );

/** Xorshift: the same seed draws the same mutants. */
function draw<T>(all: readonly T[], count: number, seed: number): T[] {
  let state = seed || 1;
  const rest = [...all];
  return Array.from({ length: Math.min(count, all.length) }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return rest.splice((state >>> 0) % rest.length, 1);
  }).flat();
}

type Verdict = 'killed' | 'killed by the time limit' | 'survived';

/** Resolves to the outcome of the mutant; without a mutant 'survived' means that the tests pass. */
function runTests(tests: readonly string[], mutant: Mutant | null, limitMs?: number): Promise<Verdict> {
  const flags = ['--import', path.join(import.meta.dirname, 'mutation-hook.ts')];
  const env = { ...process.env, LEASEHOLD_TEST_STORE: 'sqlite', LEASEHOLD_TEST_MUTANT: JSON.stringify(mutant) };
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...HARDENING, ...flags, '--test-reporter=tap', GROUP, ...tests], {
      cwd: ROOT,
      env,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let verdict: Verdict | null = null;
    const end = (as: Verdict): void => {
      verdict ??= as;
      child.kill('SIGKILL');
    };
    const timer = limitMs === undefined ? undefined : setTimeout(end, limitMs, 'killed by the time limit');
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output = output.slice(-20) + text;
      if (/^ *not ok /m.test(output)) end('killed'); // a mutant need not be killed twice
    });
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      resolve(verdict ?? (code === 0 ? 'survived' : 'killed'));
    });
  });
}

async function checkLayer({ sources, tests }: Layer, sample: number, seed: number, of: string): Promise<Mutant[]> {
  const files = filesOf(sources).filter((file) => file.includes(of));
  const mutants = draw(
    files.flatMap((file) => findMutants(file, readFileSync(file, 'utf8'))),
    sample,
    seed,
  );
  if (mutants.length === 0) return [];
  const testFiles = filesOf(tests);
  const startedAt = performance.now();
  if ((await runTests(testFiles, null)) !== 'survived') throw new Error(`${tests.join(' ')} fail without a fault`);
  const limitMs = HANGS_AFTER_TIMES * (performance.now() - startedAt);
  const survivors: Mutant[] = [];
  const waiting = mutants.values();
  const takeAll = async (): Promise<void> => {
    for (const mutant of waiting)
      if ((await runTests(testFiles, mutant, limitMs)) === 'survived') survivors.push(mutant);
  };
  await Promise.all(Array.from({ length: availableParallelism() }, takeAll));
  for (const file of files) {
    const [all, left] = [mutants, survivors].map((some) => some.filter((mutant) => mutant.file === file).length);
    console.log(`${path.relative(ROOT, file).padEnd(28)} ${(all ?? 0) - (left ?? 0)} of ${all} killed`);
  }
  for (const { file, line, original, replacement } of survivors.toSorted((a, b) => a.start - b.start))
    console.log(`  survived: ${path.relative(ROOT, file)}:${line}: ${original.replace(/\s+/g, ' ')} → ${replacement}`);
  console.log(`${survivors.length === 0 ? 'all' : mutants.length - survivors.length} of ${mutants.length} killed\n`);
  return survivors;
}

const { values } = parseArgs({
  options: { sample: { type: 'string' }, seed: { type: 'string' }, of: { type: 'string' } },
});
for (const layer of LAYERS)
  await checkLayer(layer, Number(values.sample ?? SAMPLE), Number(values.seed ?? 1), values.of ?? '');
console.log(`${processorSeconds().toFixed(0)} s processor`);
