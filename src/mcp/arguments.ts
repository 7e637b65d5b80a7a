/** Checks the arguments that a model adds to a command against the operator's rules. */
import { createContext, Script } from 'node:vm';
import type { AllowedCommand } from './allowlist.ts';
import { ToolError } from './errors.ts';

const MAX_ARGUMENT_LENGTH = 256;
/** Matching takes microseconds, but a busy machine may stop for longer than a tenth of a second meanwhile. */
const MATCH_TIMEOUT_MS = 1000;
const MATCH = new Script('pattern.test(text)');

/** @throws ToolError */
export function checkExtraArguments({ name, extraArguments }: AllowedCommand, given: readonly string[]): void {
  if (given.length === 0) return;
  const refuse = (rule: string): ToolError => new ToolError('NOT_ALLOWED', `extra_arguments: ${rule}`);
  if (extraArguments === null) throw refuse(`the operator allows none for ${name}`);
  const { most, allowsOptions, pattern } = extraArguments;
  if (given.length > most) throw refuse(`the operator allows at most ${most} for ${name}`);
  for (const text of given) {
    if (text.length > MAX_ARGUMENT_LENGTH) throw refuse(`each must be at most ${MAX_ARGUMENT_LENGTH} characters`);
    if (/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(text)) throw refuse('each must not contain control characters');
    if (text.startsWith('-') && !allowsOptions) throw refuse(`the operator allows no options for ${name}`);
    if (!doesMatch(pattern, text))
      throw refuse(`each must match the operator’s pattern for ${name}: ${pattern.source}`);
  }
}

/** WHY a separate context: only `vm` can interrupt a regular expression that backtracks catastrophically. */
function doesMatch(pattern: RegExp, text: string): boolean {
  try {
    return MATCH.runInContext(createContext({ pattern, text }), { timeout: MATCH_TIMEOUT_MS }) === true;
  } catch {
    return false;
  }
}
