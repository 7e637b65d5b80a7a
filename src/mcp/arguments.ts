/** What a model may add to a command's line: as many arguments as the operator allowed, each by his pattern, and no option. */
import { createContext, Script } from 'node:vm';
import type { AllowedCommand } from './allowlist.ts';
import { ToolError } from './errors.ts';

const LONGEST_ARGUMENT = 256;
const MATCH_WITHIN_MS = 100;
const MATCH = new Script('pattern.test(text)');

/** @throws Refusal */
export function checkExtraArguments({ name, extraArguments }: AllowedCommand, given: readonly string[]): void {
  if (given.length === 0) return;
  const refuse = (rule: string): ToolError => new ToolError('NOT_ALLOWED', `extra_arguments: ${rule}`);
  if (extraArguments === null) throw refuse(`the operator allows none for ${name}`);
  const { most, allowsOptions, pattern } = extraArguments;
  if (given.length > most) throw refuse(`the operator allows at most ${most} for ${name}`);
  for (const text of given) {
    if (text.length > LONGEST_ARGUMENT) throw refuse(`each must be at most ${LONGEST_ARGUMENT} characters`);
    if (/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(text)) throw refuse('each must be without control characters');
    if (text.startsWith('-') && !allowsOptions) throw refuse(`the operator allows no options for ${name}`);
    if (!doesMatch(pattern, text))
      throw refuse(`each must match the operator’s pattern for ${name}: ${pattern.source}`);
  }
}

/** WHY in a context of its own: it is the one way to stop an expression that a chosen text sends astray. */
function doesMatch(pattern: RegExp, text: string): boolean {
  try {
    return MATCH.runInContext(createContext({ pattern, text }), { timeout: MATCH_WITHIN_MS }) === true;
  } catch {
    return false;
  }
}
