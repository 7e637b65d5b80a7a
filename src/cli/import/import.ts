/** Runs an import: plan, confirmation, storing, report. The command provides the terminal as ports. */
import type { Leasehold } from '../../client/leasehold.ts';
import { EXIT } from '../errors.ts';
import type { Printable } from '../output/cells.ts';
import type { ImportSource } from './item.ts';
import { type ImportPlan, isToStore, makePlan } from './plan.ts';
import { OUTCOME_COLUMNS, outcomeRecords, outcomeSentence, PLAN_COLUMNS, planRecords, planSentence } from './report.ts';
import { compare, type ImportOutcome, storeAll } from './store.ts';

export interface ImportPorts {
  /** Prints a line for the user. */
  say(line: string): void;
  /** Shows the plan as a table before the confirmation. */
  showPlan(records: readonly Printable[], columns: readonly string[]): void;
  /** @throws UsageError without a terminal */
  confirm(question: string): Promise<boolean>;
  progress(what: string): { show(done: number, of: number): void; end(): void };
  print(records: readonly Printable[], columns: readonly string[]): Promise<void>;
  readonly signal: AbortSignal;
}

export interface ImportOptions {
  readonly prefix: readonly string[];
  readonly onlyNew: boolean;
  readonly compares: boolean;
  readonly isDry: boolean;
  readonly asks: boolean;
  /** Whether the caller can list every path of the vault. */
  readonly seesAll: boolean;
  /** Lines that are printed at the end when something was stored. */
  readonly followUpSteps: readonly string[];
}

/** Resolves to the exit code. @throws LeaseholdError, UsageError, the signal's reason */
export async function runImport(
  vault: Pick<Leasehold, 'credentials'>,
  source: ImportSource,
  ports: ImportPorts,
  options: ImportOptions,
): Promise<number> {
  const plan = await planFor(vault, source, ports, options);
  const wanted = plan.rows.filter(isToStore);
  if (options.isDry) {
    await ports.print(planRecords(plan), PLAN_COLUMNS);
    ports.say(`Would store: ${planSentence(plan)}. Nothing was stored.`);
    return exitCode(plan, []);
  }
  if (wanted.length > 0 && options.asks) {
    ports.showPlan(planRecords(plan), PLAN_COLUMNS);
    if (!(await ports.confirm(`Store ${planSentence(plan)}?`))) {
      ports.say('Nothing was stored.');
      return EXIT.NEGATIVE;
    }
  }
  const outcomes = await withProgress(ports, 'Storing', (progress) =>
    storeAll(vault, wanted, { onlyNew: options.onlyNew, signal: ports.signal, progress }),
  );
  await ports.print(outcomeRecords(plan, outcomes), OUTCOME_COLUMNS);
  ports.say(`${outcomeSentence(plan, outcomes)}.`);
  if (outcomes.some(({ result }) => result === 'not tried' || result === 'failed')) {
    ports.say('  Run the same command again to continue; --if-new skips what is already stored.');
  }
  if (outcomes.some(({ result }) => result === 'stored')) for (const line of options.followUpSteps) ports.say(line);
  ports.signal.throwIfAborted();
  return exitCode(plan, outcomes);
}

async function planFor(
  vault: Pick<Leasehold, 'credentials'>,
  source: ImportSource,
  ports: ImportPorts,
  { prefix, onlyNew, seesAll, compares }: ImportOptions,
): Promise<ImportPlan> {
  const { signal } = ports;
  const existing = new Set<string>();
  for await (const { path } of vault.credentials.listAll({}, { signal })) existing.add(path);
  const plan = makePlan(source, { prefix, existing, seesAll, onlyNew });
  if (!compares || onlyNew) return plan;
  return withProgress(ports, 'Comparing', (progress) => compare(vault, plan, { signal, progress }));
}

async function withProgress<T>(
  { progress: start }: ImportPorts,
  what: string,
  work: (progress: (done: number, of: number) => void) => Promise<T>,
): Promise<T> {
  const progress = start(what);
  try {
    return await work((done, of) => progress.show(done, of));
  } finally {
    progress.end();
  }
}

/** A value that was skipped, by the plan or by its source, is not a success. */
function exitCode({ skipped }: ImportPlan, outcomes: readonly ImportOutcome[]): number {
  if (outcomes.some(({ result }) => result === 'failed' || result === 'not tried')) return EXIT.ERROR;
  return skipped.some(({ kind }) => kind === 'rejected') ? EXIT.NEGATIVE : EXIT.OK;
}
