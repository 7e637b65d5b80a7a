/** A result of `leasehold doctor`. It names variables and files, and never shows what a variable contains. */
export type CheckResult = {
  readonly check: string;
  readonly result: 'ok' | 'warning' | 'wrong';
  readonly found: string;
};

export const ok = (check: string, found: string): CheckResult => ({ check, result: 'ok', found });
export const warning = (check: string, found: string): CheckResult => ({ check, result: 'warning', found });
export const wrong = (check: string, found: string): CheckResult => ({ check, result: 'wrong', found });
