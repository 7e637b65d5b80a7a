/** Reads where a credential may be used, for commands. */
import { LeaseholdError } from '../client/errors.ts';
import type { CredentialTargets } from '../client/types.ts';
import { quoteWord } from '../platform/shell-quoting.ts';
import type { Invocation } from './command.ts';
import { ErrorWithHint, withDenialHint } from './explain-denial.ts';

/** @throws ErrorWithHint, LeaseholdError */
export async function readTargets(invocation: Invocation, path: string): Promise<CredentialTargets> {
  const reading = invocation.connect().targets.read(path, { signal: invocation.signal });
  try {
    return await withDenialHint(invocation, { action: 'list', path }, reading);
  } catch (error) {
    if (!(error instanceof LeaseholdError) || error.code !== 'NOT_FOUND') throw error;
    throw new ErrorWithHint(error, `To set them: leasehold target put ${quoteWord(path)} --service NAME`);
  }
}
