/** Adds to a denial how to get access. */
import { LeaseholdError } from '../client/errors.ts';
import type { Invocation } from './command.ts';
import { quoteWord } from './output/variables.ts';

/** An error of the service with a hint. */
export class ErrorWithHint extends Error {
  readonly error: LeaseholdError;
  readonly hint: string;

  constructor(error: LeaseholdError, hint: string) {
    super(error.message);
    this.error = error;
    this.hint = hint;
  }
}

/** Awaits `work`. If access is denied, explains why and how an administrator can grant it. @throws ErrorWithHint, LeaseholdError */
export async function withDenialHint<T>(
  { settings, connect, signal }: Invocation,
  { action, path }: { readonly action: string; readonly path: string },
  work: Promise<T>,
): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const who = settings.identity.value;
    if (!(error instanceof LeaseholdError) || error.code !== 'ACCESS_DENIED') throw error;
    if (who.kind !== 'agent' && who.kind !== 'session') throw error;
    const vault = connect();
    const simulated = await vault.policies
      .simulate({ agent: who.name, resource: path, action }, { signal })
      .catch(() => null);
    // The rest of the reason is in the error message already.
    const [, near = ''] = /; (the nearest pattern is .*)\.$/.exec(simulated?.reason ?? '') ?? [];
    const why = near === '' ? '' : `${near.charAt(0).toUpperCase()}${near.slice(1)}. `;
    throw new ErrorWithHint(
      error,
      `${why}An administrator can see what would grant it: leasehold policy explain ${who.name} ${action} ${quoteWord(path)}`,
    );
  }
}
