/** Runs an import: plan, confirmation, storing, report. The command provides the terminal as ports. */
import type { Leasehold } from '../../client/leasehold.ts';
import { EXIT } from '../errors.ts';
import type { Printable } from '../output/cells.ts';
import type { ImportSource } from './item.ts';
import { type ImportPlan, type ImportRow, isToStore, makePlan, type PlanOptions } from './plan.ts';
import { columnsOf, type ReportPorts, summary, toRecords } from './report.ts';
import { compare, storeAll } from './store.ts';

export interface ImportPorts extends ReportPorts {
  /** Shows the plan as a table before the confirmation. */
  showPlan(records: readonly Printable[], columns: readonly string[]): void;
  progress(what: string): { show(done: number, of: number): void; end(): void };
  readonly signal: AbortSignal;
}

export interface ImportOptions extends Omit<PlanOptions, 'existing'> {
  readonly compares: boolean;
  readonly isDry: boolean;
  readonly asks: boolean;
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
  const { signal } = ports;
  const { onlyNew } = options;
  const existing = new Set<string>();
  for await (const { path } of vault.credentials.listAll({}, { signal })) existing.add(path);
  let plan = makePlan(source, { ...options, existing });
  if (options.compares && !onlyNew) {
    plan = await withProgress(ports, 'Comparing', (progress) => compare(vault, plan, { signal, progress }));
  }
  if (options.isDry) {
    await ports.print(toRecords(plan, 'plan'), columnsOf('plan'));
    ports.say(`Would store: ${summary(plan)}. Nothing was stored.`);
    return exitCode(plan);
  }
  if (options.asks && plan.rows.some(isToStore)) {
    ports.showPlan(toRecords(plan, 'plan'), columnsOf('plan'));
    if (!(await ports.confirm(`Store ${summary(plan)}?`))) {
      ports.say('Nothing was stored.');
      return EXIT.NEGATIVE;
    }
  }
  const stored = await withProgress(ports, 'Storing', (progress) =>
    storeAll(vault, plan, { onlyNew, signal, progress }),
  );
  await ports.print(toRecords(stored, 'result'), columnsOf('result'));
  ports.say(`${summary(stored)}.`);
  if (stored.rows.some(isLeft)) {
    ports.say('  Run the same command again to continue; --if-new skips what is already stored.');
  }
  if (stored.rows.some(({ state }) => state === 'stored')) for (const line of options.followUpSteps) ports.say(line);
  signal.throwIfAborted();
  return exitCode(stored);
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

const isLeft = ({ state }: ImportRow): boolean => state === 'failed' || state === 'not tried';

/** A value that was skipped, by the plan or by its source, is not a success. */
function exitCode({ rows, skipped }: ImportPlan): number {
  if (rows.some(isLeft)) return EXIT.ERROR;
  return skipped.some(({ kind }) => kind === 'rejected') ? EXIT.NEGATIVE : EXIT.OK;
}
