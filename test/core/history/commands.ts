/** The commands of a history. */
import type { PlainPolicy } from '../reference.ts';

export type PolicyFields = Omit<PlainPolicy, 'createdAt'>;

/** `by`: 0 the administrator, 1 unauthenticated, 2 to 4 one of the live sessions, from 5 on one of all sessions. */
interface By {
  readonly by: number;
}

export type Command =
  | (By & {
      readonly kind: 'retrieve';
      readonly path: string;
      readonly version: number | null;
      readonly ttl: number | null;
    })
  | (By & {
      readonly kind: 'store';
      readonly path: string;
      readonly type: string | null;
      readonly description: string | null;
      readonly onlyIfNew: boolean;
    })
  | (By & { readonly kind: 'remove' | 'look'; readonly path: string })
  | (By & { readonly kind: 'list' | 'listLeases' | 'readSession' | 'endSession' })
  | (By & { readonly kind: 'createPolicy' | 'replacePolicy'; readonly policy: PolicyFields })
  | (By & { readonly kind: 'deletePolicy' | 'readPolicy'; readonly name: string })
  | (By & { readonly kind: 'simulate'; readonly agent: string; readonly path: string; readonly action: string })
  | (By & { readonly kind: 'register'; readonly name: string; readonly description: string })
  | (By & { readonly kind: 'deregister'; readonly name: string })
  /** `lease`: 0 to 2 one under the caller's name, from 3 on one of all, counted from the one that was issued last. */
  | (By & { readonly kind: 'readLease' | 'renew' | 'revoke'; readonly lease: number })
  /** `own`: the caller's name, which the vault uses for an agent that gives no name. */
  | (By & { readonly kind: 'revokeMany'; readonly agent: string | null; readonly path: string | null })
  | (By & { readonly kind: 'readAudit' })
  | { readonly kind: 'challenge'; readonly name: string }
  /** `challenge`: counted from the last one. `isSigned`: with the named agent's key. */
  | { readonly kind: 'verify'; readonly name: string; readonly challenge: number; readonly isSigned: boolean }
  | { readonly kind: 'start' };

/** How time advances before a batch: by an amount, or to just before, at or after the next expiries. */
export type Wait = { readonly ms: number } | { readonly end: number; readonly delta: -1 | 0 | 1 };

export interface Turn {
  readonly wait: Wait;
  readonly commands: readonly Command[];
}

export interface History {
  readonly adminMayRetrieve: boolean;
  readonly versionsKept: number;
  readonly turns: readonly Turn[];
}

export const OWN = 'own';
