/** What a command goes by, and where each of it was said. */

import type { Secret } from '../../core/secret.ts';
import type { Format } from '../output/output.ts';

/** Where a setting was said, in words for a person: `--address`, `LEASEHOLD_ADDR`, `./leasehold.toml [profiles.dev]`, `the default`. */
export interface Said<T> {
  readonly value: T;
  readonly by: string;
  /** From the strongest: what somebody typed goes before everything. */
  readonly level: 'flag' | 'environment' | 'project file' | 'user file' | 'login' | 'data directory' | 'default';
}

/** As whom the service is asked. */
export type Identity =
  | { readonly kind: 'token'; readonly token: Secret }
  | { readonly kind: 'agent'; readonly name: string; readonly keyFile: string }
  | { readonly kind: 'session'; readonly name: string; readonly token: Secret; readonly expiresAt: string }
  | { readonly kind: 'nobody' };

export interface Settings {
  readonly address: Said<string>;
  readonly identity: Said<Identity>;
  readonly dataDir: Said<string>;
  readonly format: Said<Format>;
  /** Of each call. */
  readonly timeoutSeconds: Said<number>;
  readonly allowsInsecureHttp: boolean;
  /** For `doctor`: what else was said, and lost. */
  readonly overruled: readonly (Said<string> & { readonly setting: string })[];
}
