/** Checks all state of the vault against its log, through the running service. */
import type { Leasehold } from '../../client/leasehold.ts';
import type { Invocation } from '../command.ts';
import { startProgress } from '../progress.ts';
import { type CheckResult, ok, wrong } from './check-result.ts';

const PROGRESS_INTERVAL_MS = 500;

/** Verifies the log too, because a row counts by its newest entry. */
export async function checkState(
  vault: Leasehold,
  { terminal, signal }: Invocation,
  values: boolean,
): Promise<CheckResult[]> {
  const progress = startProgress(terminal, 'Checking');
  const polling = setInterval(() => {
    vault.audit
      .readProgress({ signal })
      .then(({ entries_checked, entries_total, rows_checked }) =>
        rows_checked == null ? progress.show(entries_checked ?? 0, entries_total) : progress.show(rows_checked, null),
      )
      // Progress is optional; verify() reports real errors.
      .catch(() => undefined);
  }, PROGRESS_INTERVAL_MS);
  try {
    const found = await vault.audit.verify({ state: true, values, signal });
    const log = found.valid ? ok('log', `${found.entries} entries, chain intact`) : wrong('log', found.message);
    const { checked, problem_count, problems } = found.state ?? { checked: 0, problem_count: 0, problems: [] };
    if (problem_count === 0) return [log, ok('state', `${checked} rows, entries and values answer to the log`)];
    const shown = problems.map(({ subject, problem }) => wrong('state', `${subject}: ${problem}`));
    const others = problem_count - problems.length;
    return [log, ...shown, ...(others > 0 ? [wrong('state', `${others} more`)] : [])];
  } finally {
    clearInterval(polling);
    progress.end();
  }
}
