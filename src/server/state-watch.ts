/** Checks the state against the log once, slowly, after a start, and logs one line if a row does not answer to it. */
import type { StateChecker } from '../vault/verification/state-checker.ts';
import type { ServiceLog } from './log.ts';
import { logFailure } from './log-failure.ts';

const MAX_NAMED = 5;

/** `stop` resolves when the running step has ended. */
export function startStateCheck(checker: StateChecker, log: ServiceLog): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const checking = checker.checkSlowly(stopping.signal).then(
    ({ problemCount, problems }) => {
      if (problemCount === 0) return;
      const named = problems.slice(0, MAX_NAMED).map(({ subject, problem }) => `${subject} (${problem})`);
      log.warn(
        `${problemCount} rows do not answer to the log and have no effect: ${named.join(', ')}. leasehold doctor --state lists them`,
      );
    },
    (error: unknown) => {
      if (stopping.signal.aborted) return;
      logFailure((line, cause) => log.error(line, cause), 'the state could not be checked', error);
    },
  );
  return {
    async stop() {
      stopping.abort();
      await checking;
    },
  };
}
