/** The brute-force model of exposures: every retrieval and use, and every lease, in lists that are searched. */
import type { AgentName, LeaseId } from '../../src/core/names.ts';
import type { Context } from '../../src/core/operation.ts';
import type { CredentialPath } from '../../src/core/path.ts';
import type { VersionExposure } from '../../src/vault/exposure/exposure-record.ts';

export type Step =
  | { readonly kind: 'store' | 'delete' | 'targets'; readonly path: number }
  | { readonly kind: 'retrieve'; readonly agent: number; readonly path: number; readonly isOld: boolean }
  | { readonly kind: 'use'; readonly agent: number; readonly path: number; readonly ends: boolean }
  | { readonly kind: 'token'; readonly agent: number; readonly path: number }
  | { readonly kind: 'useToken' | 'renew' | 'revoke'; readonly which: number }
  | { readonly kind: 'revokeAll' | 'panic' | 'register'; readonly agent: number };

export interface HeldLease {
  readonly id: LeaseId;
  readonly agent: AgentName;
  readonly credential: object;
  /** Null for a token, which uses the newest version. */
  readonly version: number | null;
  readonly isUse: boolean;
  readonly context: Context | null;
  expiresAt: number;
  isEnded: boolean;
}

interface Act {
  readonly agent: AgentName;
  readonly path: CredentialPath;
  readonly credential: object;
  readonly version: number;
  readonly isUse: boolean;
  readonly at: number;
}

/** One line for an agent's exposure: times, first, last, whether it is live. */
type Line = string;
export interface Expected {
  readonly path: string;
  readonly version: number;
  readonly isDeleted: boolean;
  readonly seenBy: readonly Line[];
  readonly usedBy: readonly Line[];
}

export interface ActFilter {
  readonly path?: CredentialPath;
  readonly agent?: AgentName;
}

export class ExposureModel {
  /** The credentials that exist, with their newest versions. */
  readonly credentials = new Map<CredentialPath, { newest: number }>();
  readonly #now: () => number;
  readonly #acts: Act[] = [];
  readonly #leases: HeldLease[] = [];

  constructor(now: () => number) {
    this.#now = now;
  }

  get leaseCount(): number {
    return this.#leases.length;
  }

  active(): HeldLease[] {
    return this.#leases.filter(({ isEnded, expiresAt }) => !isEnded && expiresAt > this.#now());
  }

  end(isOf: (lease: HeldLease) => boolean): void {
    for (const lease of this.#leases) if (isOf(lease)) lease.isEnded = true;
  }

  did(agent: AgentName, path: CredentialPath, credential: object, version: number, isUse: boolean): void {
    this.#acts.push({ agent, path, credential, version, isUse, at: this.#now() });
  }

  hold(lease: Omit<HeldLease, 'expiresAt' | 'isEnded'>, expiresAt: number): HeldLease {
    const held = { ...lease, expiresAt, isEnded: false };
    this.#leases.push(held);
    return held;
  }

  expected(filter: ActFilter): Expected[] {
    const acts = this.#acts.filter(
      ({ path, agent }) => path === (filter.path ?? path) && agent === (filter.agent ?? agent),
    );
    const groups = Map.groupBy(acts, ({ credential, version }) => `${this.#indexOf(credential)} ${version}`);
    return [...groups.values()].flatMap((group) => {
      const [first] = group;
      if (first === undefined) return [];
      const { path, credential, version } = first;
      const isDeleted = this.credentials.get(path) !== credential;
      const lines = (isUse: boolean) => this.#lines(group, isUse, credential, version);
      return [{ path, version, isDeleted, seenBy: lines(false), usedBy: lines(true) }];
    });
  }

  #lines(group: readonly Act[], isUse: boolean, credential: object, version: number): Line[] {
    const newest = [...this.credentials.values()].find((each) => each === credential)?.newest;
    const agents = new Set(group.map(({ agent }) => agent));
    return [...agents].sort().flatMap((agent) => {
      const own = group.filter((act) => act.agent === agent && act.isUse === isUse).map(({ at }) => at);
      const isLive = this.active().some(
        (lease) =>
          lease.agent === agent &&
          lease.isUse === isUse &&
          lease.credential === credential &&
          (lease.version ?? newest) === version,
      );
      return own.length === 0 ? [] : [`${agent} ${own.length} ${Math.min(...own)} ${Math.max(...own)} ${isLive}`];
    });
  }

  /** Distinguishes credentials with equal content. */
  #indexOf(credential: object): number {
    return this.#acts.findIndex((act) => act.credential === credential);
  }
}

/** Converts to the form of the model. */
export function toExpected(versions: readonly VersionExposure[]): Expected[] {
  const line = ({ agentName, times, firstAt, lastAt, isLive }: VersionExposure['seenBy'][number]): Line =>
    `${agentName} ${times} ${firstAt} ${lastAt} ${isLive}`;
  return versions.map(({ path, version, newestVersion, seenBy, usedBy }) => ({
    path,
    version,
    isDeleted: newestVersion === null,
    seenBy: seenBy.map(line),
    usedBy: usedBy.map(line),
  }));
}

/** @throws an error that is not a rejection */
export function rejected(error: unknown): null {
  if (error instanceof Error && 'code' in error && error.code !== 'UNAVAILABLE') return null;
  throw error;
}
