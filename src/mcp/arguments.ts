/** Checks the arguments that a model adds to a command against the operator's rules. */
import { createContext, Script } from 'node:vm';
import type { AllowedCommand } from './allowlist.ts';
import { ToolError } from './errors.ts';

const MAX_ARGUMENT_LENGTH = 256;
/**
 * For all arguments of a call. Most patterns match in microseconds, but a busy machine may suspend the process for some
 * hundred milliseconds meanwhile.
 */
const MATCH_TIMEOUT_MS = 1000;
const MATCH = new Script('pattern.test(text)');

/** @throws ToolError */
export function checkExtraArguments({ name, extraArguments }: AllowedCommand, given: readonly string[]): void {
  if (given.length === 0) return;
  const refuse = (rule: string): ToolError => new ToolError('NOT_ALLOWED', `extra_arguments: ${rule}`);
  if (extraArguments === null) throw refuse(`the operator allows none for ${name}`);
  const { most, allowsOptions, pattern } = extraArguments;
  const matchUntil = performance.now() + MATCH_TIMEOUT_MS;
  if (given.length > most) throw refuse(`the operator allows at most ${most} for ${name}`);
  for (const text of given) {
    if (text.length > MAX_ARGUMENT_LENGTH) throw refuse(`each must be at most ${MAX_ARGUMENT_LENGTH} characters`);
    if (/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(text)) throw refuse('each must not contain control characters');
    if (text.startsWith('-') && !allowsOptions) throw refuse(`the operator allows no options for ${name}`);
    if (!doesMatch(pattern, text, matchUntil - performance.now()))
      throw refuse(`each must match the operator’s pattern for ${name}: ${pattern.source}`);
  }
}

/** WHY a separate context: only `vm` can interrupt a regular expression that backtracks catastrophically. */
function doesMatch(pattern: RegExp, text: string, timeoutMs: number): boolean {
  try {
    const timeout = Math.max(1, Math.ceil(timeoutMs));
    return MATCH.runInContext(createContext({ pattern, text }), { timeout }) === true;
  } catch {
    return false;
  }
}
