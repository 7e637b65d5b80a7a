/** The settings of a command and their sources. Precedence: flag, environment, project file, user file, default. */
import type { Secret } from '../../core/secret.ts';
import type { Format } from '../output/output.ts';
import type { ChallengeService } from '../terminal.ts';
import type { RunMapping, SkippedFile } from './files.ts';

/** Highest precedence first. */
export type Precedence = 'flag' | 'environment' | 'project file' | 'user file' | 'login' | 'data directory' | 'default';

export interface Setting<T> {
  readonly value: T;
  /** For messages: `--address`, `LEASEHOLD_ADDR`, `leasehold.toml [profiles.dev]`, `the default`. */
  readonly source: string;
  readonly level: Precedence;
}

/** The identity used for requests. */
export type Identity =
  | { readonly kind: 'token'; readonly token: Secret }
  | { readonly kind: 'agent'; readonly name: string; readonly keyFile: string }
  | {
      readonly kind: 'session';
      readonly name: string;
      readonly token: Secret;
      readonly expiresAt: string;
      /** The key for a new session; null if the agent was not named explicitly. */
      readonly keyFile: string | null;
    }
  | { readonly kind: 'anonymous' };

const SESSION_PREFIX = 'lhs_';

/** A session token always belongs to an agent. */
export function mayBeAdministrator(identity: Identity): boolean {
  return identity.kind === 'token' && !identity.token.reveal().startsWith(SESSION_PREFIX);
}

/** The service of a data directory. */
export interface OwnService {
  readonly dataDir: string;
  /** From the address file of the directory. */
  readonly address: string;
  readonly challengeService: ChallengeService;
}

export interface Settings {
  readonly address: Setting<string>;
  readonly identity: Setting<Identity>;
  readonly dataDir: Setting<string>;
  /**
   * Set when the address, the token or the trust in the address comes from the data directory: the service must then
   * prove itself.
   */
  readonly ownService: OwnService | null;
  /** PEM file of the trusted certificate authorities; null for those of the system. */
  readonly caFile: Setting<string> | null;
  readonly format: Setting<Format>;
  /** For each request. */
  readonly timeoutSeconds: Setting<number>;
  readonly allowsInsecureHttp: boolean;
  /** A project file that was not read, or null. */
  readonly skippedFile: SkippedFile | null;
  readonly profile: Setting<string> | null;
  /** The tables `[run.NAME]`, by name. */
  readonly runs: ReadonlyMap<string, Setting<RunMapping>>;
  /** Values that a higher precedence overrides, for `doctor`. */
  readonly overridden: readonly (Setting<string> & { readonly setting: string })[];
}

/** All candidates of one setting, highest precedence first. */
export class Candidates<T> {
  readonly #candidates: Setting<T>[] = [];

  add(value: T | null | undefined, source: string, level: Precedence): this {
    if (value !== null && value !== undefined) this.#candidates.push({ value, source, level });
    return this;
  }

  get first(): Setting<T> | null {
    return this.#candidates[0] ?? null;
  }

  get others(): readonly Setting<T>[] {
    return this.#candidates.slice(1);
  }
}
