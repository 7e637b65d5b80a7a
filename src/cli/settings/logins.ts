/** What `leasehold login` keeps: a session or a token for each address, in a private file of the user's. `logout` takes it away. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Secret } from '../../core/secret.ts';
import { checkPrivateFile, ensurePrivateDir, writePrivateFile } from '../../platform/private-files.ts';
import type { UserDirs } from './files.ts';

export type Login =
  | { readonly kind: 'session'; readonly agent: string; readonly token: Secret; readonly expiresAt: string }
  | { readonly kind: 'token'; readonly token: Secret };

/** As it lies in the file. */
interface Kept {
  readonly token: string;
  readonly agent?: string;
  readonly expires_at?: string;
}

export function loginsPath({ home, environment }: UserDirs): string {
  return join(environment['XDG_STATE_HOME'] || join(home, '.local', 'state'), 'leasehold', 'logins.json');
}

/** Null where there is none; one that has ended is told by its end. @throws StartupError where the file is another user's, or a link */
export function readLogin(places: UserDirs, address: string): Login | null {
  const kept = readAll(places).get(address);
  if (kept === undefined || typeof kept.token !== 'string') return null;
  const token = new Secret(kept.token);
  if (kept.agent === undefined || kept.expires_at === undefined) return { kind: 'token', token };
  return { kind: 'session', agent: kept.agent, token, expiresAt: kept.expires_at };
}

/** Null takes it away. Whether there was one before. */
export function writeLogin(places: UserDirs, address: string, login: Login | null): boolean {
  const all = readAll(places);
  const wasThere = all.delete(address);
  if (login !== null) {
    const token = login.token.reveal();
    all.set(address, login.kind === 'token' ? { token } : { token, agent: login.agent, expires_at: login.expiresAt });
  }
  const path = loginsPath(places);
  ensurePrivateDir(dirname(path));
  writePrivateFile(path, `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`);
  return wasThere;
}

function readAll(places: UserDirs): Map<string, Kept> {
  const path = loginsPath(places);
  if (!checkPrivateFile(path)) return new Map();
  try {
    const all: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (typeof all === 'object' && all !== null) return new Map(Object.entries(all));
  } catch {
    // What can't be read is no login.
  }
  return new Map();
}
