/** What a command goes by, and where each of it was said: flag over environment over project file over user file over default. */
import type { Secret } from '../../core/secret.ts';
import type { Format } from '../output/output.ts';
import type { ChallengeService } from '../terminal.ts';
import type { RunMapping, SkippedFile } from './files.ts';

/** From the strongest: what somebody typed goes before everything. */
export type Precedence = 'flag' | 'environment' | 'project file' | 'user file' | 'login' | 'data directory' | 'default';

export interface Setting<T> {
  readonly value: T;
  /** In words for a person: `--address`, `LEASEHOLD_ADDR`, `leasehold.toml [profiles.dev]`, `the default`. */
  readonly source: string;
  readonly level: Precedence;
}

/** As whom the service is asked. */
export type Identity =
  | { readonly kind: 'token'; readonly token: Secret }
  | { readonly kind: 'agent'; readonly name: string; readonly keyFile: string }
  | {
      readonly kind: 'session';
      readonly name: string;
      readonly token: Secret;
      readonly expiresAt: string;
      /** With which a new one could be begun; null where nobody named the agent. */
      readonly keyFile: string | null;
    }
  | { readonly kind: 'nobody' };

const SESSION_PREFIX = 'lhs_';

/** Whether it may be the administrator: a session's token is an agent's. */
export function mayBeAdministrator(identity: Identity): boolean {
  return identity.kind === 'token' && !identity.token.reveal().startsWith(SESSION_PREFIX);
}

/** The service of a data directory, by what the directory says. */
export interface OwnService {
  readonly dataDir: string;
  /** As it stands there. */
  readonly address: string;
  readonly challengeService: ChallengeService;
}

export interface Settings {
  readonly address: Setting<string>;
  readonly identity: Setting<Identity>;
  readonly dataDir: Setting<string>;
  /** Set where the address, the token or the trust in the address came out of the data directory: then it must prove itself. */
  readonly ownService: OwnService | null;
  /** Certificates of the authorities that are trusted for the service; null for the usual ones. */
  readonly caFile: Setting<string> | null;
  readonly format: Setting<Format>;
  /** Of each call. */
  readonly timeoutSeconds: Setting<number>;
  readonly allowsInsecureHttp: boolean;
  /** A project's file that is not read; null where there is none. */
  readonly unreadFile: SkippedFile | null;
  readonly profile: Setting<string> | null;
  /** What `leasehold run` delivers by the name of a mapping; the project's before the user's. */
  readonly runs: ReadonlyMap<string, Setting<RunMapping>>;
  /** For `doctor`: what else was said of a setting, and lost. */
  readonly overridden: readonly (Setting<string> & { readonly setting: string })[];
}

/** Of one setting all that was said, the strongest first. */
export class Candidates<T> {
  readonly #said: Setting<T>[] = [];

  add(value: T | null | undefined, source: string, level: Precedence): this {
    if (value !== null && value !== undefined) this.#said.push({ value, source, level });
    return this;
  }

  get first(): Setting<T> | null {
    return this.#said[0] ?? null;
  }

  get others(): readonly Setting<T>[] {
    return this.#said.slice(1);
  }
}
