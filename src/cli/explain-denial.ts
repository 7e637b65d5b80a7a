/** A refusal that tells the way to the grant that is missing. */
import { LeaseholdError } from '../client/errors.ts';
import type { Invocation } from './command.ts';
import { quoteWord } from './output/variables.ts';

/** An error of the service, with what to do about it. */
export class ErrorWithHint extends Error {
  readonly error: LeaseholdError;
  readonly hint: string;

  constructor(error: LeaseholdError, hint: string) {
    super(error.message);
    this.error = error;
    this.hint = hint;
  }
}

/** Does what is asked; of a denial it also says why, as the service sees it, and who can change it. @throws Hinted, LeaseholdError */
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
    // What the refusal itself says is not said again.
    const [, near = ''] = /; (the nearest pattern is .*)\.$/.exec(simulated?.reason ?? '') ?? [];
    const why = near === '' ? '' : `${near.charAt(0).toUpperCase()}${near.slice(1)}. `;
    throw new ErrorWithHint(
      error,
      `${why}An administrator sees what would grant it with: leasehold policy explain ${who.name} ${action} ${quoteWord(path)}`,
    );
  }
}
