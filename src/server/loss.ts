/** A loss of log entries, or of what would show it, and how the operator learns of it. */
import { StartupError } from '../platform/errors.ts';

export interface Loss {
  /** The loss, in one sentence. */
  readonly what: string;
  /** The alternatives to accepting the loss. */
  readonly remedy: string;
}

/** The loss of an anchor, which hides a loss of entries. */
export function withoutAnchor(path: string, state: string, remedy: string): Loss {
  return {
    what: `${path} is ${state}, so a loss of log entries cannot be detected.`,
    remedy,
  };
}

/** The line for an operator who accepts the loss; null without a loss. @throws StartupError if it is not accepted */
export function acceptLoss(loss: Loss | null, accepts: boolean): string | null {
  if (loss === null) return null;
  if (!accepts) throw new StartupError(`${loss.what} ${loss.remedy}.`);
  return `${loss.what} The operator accepts the loss.`;
}

/** One line for the operator of a vault that is read-only for it. */
export function describeLoss({ what, remedy }: Loss): string {
  return `${what} Until that is solved, only health, and lists, verification and export of the log, are served. ${remedy}; or, to accept the loss, run leasehold audit accept-rollback, or start once with --accept-rollback.`;
}
