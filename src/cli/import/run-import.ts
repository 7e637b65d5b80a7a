/** Runs an import: plan, confirmation, storing, references in a .env file, report. It never prints a value. */
import { quoteWord } from '../../platform/installation.ts';
import { baseUrlVariable } from '../../run/bindings.ts';
import type { Invocation } from '../command.ts';
import { EXIT } from '../errors.ts';
import { pluralize, toCell } from '../output/cells.ts';
import { toTable } from '../output/output.ts';
import { startProgress } from '../progress.ts';
import { confirm } from '../prompt.ts';
import { hasColours, printNotice, type Terminal } from '../terminal.ts';
import { type EnvFile, RewriteError, rewrite, withReferences } from './env-rewrite.ts';
import {
  compare,
  type ImportPlan,
  type ImportRow,
  type ImportTarget,
  isToStore,
  makePlan,
  type PlanOptions,
  storeAll,
} from './import-plan.ts';
import type { ImportSource } from './source.ts';

const MAX_ROWS_SHOWN = 200;

export interface ImportOptions extends Omit<PlanOptions, 'existing'> {
  readonly compares: boolean;
  readonly isDry: boolean;
  readonly asks: boolean;
  /** Null unless the source is a .env file that can be rewritten. */
  readonly envFile: EnvFile | null;
  readonly rewrites: boolean;
  /** The file or the URL that still holds the values; null for standard input. */
  readonly origin: string | null;
}

/** Resolves to the exit code. @throws LeaseholdError, UsageError, the signal's reason */
export async function runImport(
  vault: ImportTarget,
  source: ImportSource,
  invocation: Invocation,
  options: ImportOptions,
): Promise<number> {
  const { signal, terminal, output } = invocation;
  const { onlyNew, envFile } = options;
  const say = (line: string): void => printNotice(terminal, line);
  const existing = new Set<string>();
  for await (const { path } of vault.credentials.listAll({}, { signal })) existing.add(path);
  let plan = makePlan(source, { ...options, existing });
  if (options.compares && !onlyNew) {
    using progress = startProgress(terminal, 'Comparing');
    plan = await compare(vault, plan, { signal, progress: progress.show });
  }
  if (options.isDry) {
    await output.records(toRecords(plan, 'plan'), columnsOf('plan'), null);
    say(`Would store: ${summary(plan)}. Nothing was stored.`);
    return exitCode(plan);
  }
  if (options.asks && plan.rows.some(isToStore)) {
    showPlan(terminal, plan);
    const then = options.rewrites ? `, and replace them in ${toCell(envFile?.name)} by references` : '';
    if (!(await confirm(invocation, `Store ${summary(plan)}${then}?`))) {
      say('Nothing was stored.');
      return EXIT.NEGATIVE;
    }
  }
  let done: ImportPlan;
  {
    using progress = startProgress(terminal, 'Storing');
    done = await storeAll(vault, plan, { onlyNew, signal, progress: progress.show });
  }
  await output.records(toRecords(done, 'result'), columnsOf('result'), null);
  say(`${summary(done)}.`);
  if (done.rows.some(isUnfinished)) {
    say('  Run the same command again to continue; --if-new skips values that are already stored.');
  }
  signal.throwIfAborted();
  // The vault has confirmed that it stores these values.
  const stored = done.rows.filter(({ state }) => state === 'stored' || state === 'unchanged');
  const rewriting = envFile === null ? null : await rewriteFile(envFile, stored, invocation, options);
  if (stored.length > 0) for (const line of followUpSteps(stored, rewriting, options)) say(line);
  return rewriting === 'failed' ? EXIT.ERROR : exitCode(done);
}

/** Shows the plan as a table before the confirmation. */
function showPlan(terminal: Terminal, plan: ImportPlan): void {
  const { stderr } = terminal;
  const records = toRecords(plan, 'plan');
  const style = { isColoured: hasColours(terminal, stderr), width: stderr.columns ?? null };
  stderr.write(toTable(records.slice(0, MAX_ROWS_SHOWN), columnsOf('plan'), style));
  const others = records.length - MAX_ROWS_SHOWN;
  if (others > 0) printNotice(terminal, `… and ${others} more: see --dry-run.`);
}

type Rewriting = 'replaced' | 'declined' | 'failed';

/** ORDER: only after the server has acknowledged the values that are replaced with references. */
async function rewriteFile(
  file: EnvFile,
  stored: readonly ImportRow[],
  invocation: Invocation,
  { prefix, rewrites, asks }: ImportOptions,
): Promise<Rewriting> {
  const { content, replaced } = withReferences(file, prefix, stored);
  if (replaced === 0) return 'declined';
  const values = pluralize(replaced, 'value');
  const name = toCell(file.name);
  if (!rewrites && !(asks && (await confirm(invocation, `Replace ${values} in ${name} by references?`))))
    return 'declined';
  try {
    await rewrite(file.path, file.bytes, content);
    printNotice(invocation.terminal, `Replaced ${values} in ${name} by references.`);
    return 'replaced';
  } catch (error) {
    if (!(error instanceof RewriteError)) throw error;
    printNotice(invocation.terminal, `${name} was not changed: ${error.message}.`);
    return 'failed';
  }
}

const isUnfinished = ({ state }: ImportRow): boolean => state === 'failed' || state === 'not tried';

/**
 * A value that was skipped by the plan or by its source is not a success. Neither is a value whose service could not be
 * set.
 */
function exitCode({ rows, skipped }: ImportPlan): number {
  if (rows.some(isUnfinished)) return EXIT.ERROR;
  const isPartial = skipped.some(({ kind }) => kind === 'rejected') || rows.some(({ reason }) => reason !== null);
  return isPartial ? EXIT.NEGATIVE : EXIT.OK;
}

type Column = 'plan' | 'result';

const columnsOf = (column: Column): readonly string[] => ['path', column, 'type', 'service', 'from', 'reason'];

function toRecords({ rows, skipped }: ImportPlan, column: Column) {
  return [
    ...rows.map(({ path, state, draft: { type }, service, from, reason }) => ({
      path,
      [column]: state,
      type,
      service: service?.name ?? null,
      from,
      reason,
    })),
    ...skipped.map(({ where, reason }) => ({
      path: null,
      [column]: 'skipped',
      type: null,
      service: null,
      from: where,
      reason,
    })),
  ];
}

/** `12 new, 3 new versions, 2 skipped`. */
function summary({ rows, skipped }: ImportPlan): string {
  const counts = [...Map.groupBy(rows, ({ state }) => state)].map(([state, group]) =>
    state === 'new version' ? pluralize(group.length, state) : `${group.length} ${state}`,
  );
  if (skipped.length > 0) counts.push(`${skipped.length} skipped`);
  return counts.join(', ') || 'nothing';
}

function followUpSteps(
  stored: readonly ImportRow[],
  rewriting: Rewriting | null,
  { envFile, origin }: ImportOptions,
): readonly string[] {
  const used = stored.filter(({ service }) => service !== null);
  const retrieved = envFile === null ? [] : stored.filter(({ service }) => service === null);
  return [
    ...(used.length + retrieved.length === 0 ? [] : accessSteps(used, retrieved)),
    ...(rewriting === 'replaced'
      ? [`    leasehold --agent NAME run --env-file ${quoteWord(envFile?.name ?? '')} -- COMMAND`]
      : runStep(used, retrieved)),
    ...(rewriting === 'replaced' ? used.flatMap(clientStep) : []),
    ...sourceSteps(rewriting, origin),
  ];
}

function accessSteps(used: readonly ImportRow[], retrieved: readonly ImportRow[]): readonly string[] {
  const policy = (name: string, rows: readonly ImportRow[], action: string): string =>
    `    leasehold policy put ${name} --principal agent:NAME --resource ${resourcesOf(rows)} --action ${action}`;
  return [
    '  Next, for an agent NAME:',
    '    leasehold agent add NAME',
    ...(used.length === 0 ? [] : [`${policy('NAME-use', used, 'use')}   # without the values`]),
    ...(retrieved.length === 0 ? [] : [`${policy('NAME-retrieve', retrieved, 'retrieve')}   # with the values`]),
  ];
}

const MAX_SHOWN = 16;

function resourcesOf(rows: readonly ImportRow[]): string {
  const paths = rows.slice(0, MAX_SHOWN).map(({ path }) => path);
  return quoteWord([...paths, ...(rows.length > MAX_SHOWN ? ['…'] : [])].join(','));
}

function runStep(used: readonly ImportRow[], retrieved: readonly ImportRow[]): readonly string[] {
  const words = [
    ...used.map((row) => [
      '--use',
      readsVariables(row) ? row.path : `${baseUrlName(row).slice(0, -URL_ENDING.length)}=${row.path}`,
    ]),
    ...retrieved.map((row) => ['--env', `${variableOf(row)}=${row.path}`]),
  ];
  if (words.length === 0) return [];
  const shown = words.slice(0, MAX_SHOWN).map(([flag, word = '']) => `${flag} ${quoteWord(word)}`);
  return [`    leasehold --agent NAME run ${shown.join(' ')}${words.length > MAX_SHOWN ? ' …' : ''} -- COMMAND`];
}

const URL_ENDING = '_BASE_URL';
const variableOf = ({ draft: { names } }: ImportRow): string => names.at(-1) ?? '';
const baseUrlName = (row: ImportRow): string => baseUrlVariable(variableOf(row));

function readsVariables({ service }: ImportRow): boolean {
  const has = (kind: string): boolean => service?.variables.some(({ holds }) => holds === kind) === true;
  return has('base-url') && has('key');
}

function clientStep(row: ImportRow): readonly string[] {
  const variable = variableOf(row);
  if (readsVariables(row) && row.service?.variables.some(({ name }) => name === variable)) return [];
  return [
    `    ${variable}: the client must send its requests to ${baseUrlName(row)}. If it cannot, delete ?use and grant retrieve.`,
  ];
}

function sourceSteps(rewriting: Rewriting | null, origin: string | null): readonly string[] {
  if (origin === null) return [];
  const copies = '  Copies that were committed, sent or backed up contain the values too: rotate those.';
  if (rewriting === 'replaced') return [copies];
  const source = toCell(origin);
  if (rewriting === null && origin.includes('://')) {
    return [
      `  ${source} still holds these secrets. Rotate them, or delete them there after you have checked the import.`,
    ];
  }
  return [
    `  ${source} still holds every value in plain text.${rewriting === null ? '' : ' --rewrite replaces them by references.'} After you have checked the import: rm ${quoteWord(source)}`,
    copies,
  ];
}
