/** The settings of a command and their sources. Precedence: flag, environment, project file, user file, default. */

import { OPERATOR_PREFIX } from '../../core/names.ts';
import type { Secret } from '../../vault/credentials/credential.ts';
import type { Format } from '../output/cells.ts';
import type { ChallengeService } from '../terminal.ts';
import type { RunMapping, SkippedFile } from './files.ts';

/** The precedence levels, the highest first. */
export type Precedence = 'flag' | 'environment' | 'project file' | 'user file' | 'login' | 'data directory' | 'default';

export interface Setting<T> {
  readonly value: T;
  /**
   * The name of the source in messages: `--address`, `LEASEHOLD_ADDR`, `leasehold.toml [profiles.dev]`, `the default`.
   */
  readonly source: string;
  readonly level: Precedence;
}

/** The record that `leasehold login` saves for an address. */
export type Login =
  | { readonly kind: 'token'; readonly token: Secret }
  | {
      readonly kind: 'session';
      readonly name: string;
      readonly token: Secret;
      readonly expiresAt: string;
      /** The key for a new session; null if the agent was not named explicitly. */
      readonly keyFile: string | null;
    };

export type Identity =
  | Login
  | { readonly kind: 'agent'; readonly name: string; readonly keyFile: string }
  | { readonly kind: 'anonymous' };

/** The name as a title: `agent NAME` or `operator NAME`. The flag is the same text after two hyphens. */
export function titleOf(name: string): string {
  return name.startsWith(OPERATOR_PREFIX) ? `operator ${name.slice(OPERATOR_PREFIX.length)}` : `agent ${name}`;
}

const SESSION_PREFIX = 'lhs_';

/** Whether the identity may be the administrator. A session token always belongs to an agent or an operator. */
export function mayBeAdministrator(identity: Identity): boolean {
  return identity.kind === 'token' && !identity.token.reveal().startsWith(SESSION_PREFIX);
}

export interface OwnService {
  readonly dataDir: string;
  readonly address: string;
  readonly challengeService: ChallengeService;
}

export interface Settings {
  readonly address: Setting<string>;
  readonly identity: Setting<Identity>;
  readonly dataDir: Setting<string>;
  /**
   * Set when the address, the token or the trust in the address comes from the data directory. The server must then
   * prove itself.
   */
  readonly ownService: OwnService | null;
  /** PEM file of the trusted certificate authorities; null for the system's own. */
  readonly caFile: Setting<string> | null;
  readonly format: Setting<Format>;
  readonly timeoutSeconds: Setting<number>;
  readonly allowsInsecureHttp: boolean;
  readonly skippedFile: SkippedFile | null;
  readonly profile: Setting<string> | null;
  readonly runs: ReadonlyMap<string, Setting<RunMapping>>;
}
