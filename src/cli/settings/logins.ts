/** Stores the logins of `leasehold login`, one for each address, in a private file of the user. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Secret } from '../../core/secret.ts';
import { checkPrivateFile, ensurePrivateDir, writePrivateFile } from '../../platform/private-files.ts';
import type { UserDirs } from './files.ts';
import type { Login } from './settings.ts';

/** The JSON of one login. */
interface SavedLogin {
  readonly token: string;
  readonly agent?: string;
  readonly expires_at?: string;
}

export function loginsPath({ home, environment }: UserDirs): string {
  return join(environment['XDG_STATE_HOME'] || join(home, '.local', 'state'), 'leasehold', 'logins.json');
}

/**
 * Returns null without a login. The session may have expired. @throws StartupError when the file belongs to another
 * user or is a link
 */
export function readLogin(userDirs: UserDirs, address: string): Login | null {
  const saved = readAll(userDirs).get(address);
  if (saved === undefined || typeof saved.token !== 'string') return null;
  const token = new Secret(saved.token);
  if (saved.agent === undefined || saved.expires_at === undefined) return { kind: 'token', token };
  return { kind: 'session', name: saved.agent, token, expiresAt: saved.expires_at, keyFile: null };
}

/** Null deletes the login. Returns whether one existed before. */
export function writeLogin(userDirs: UserDirs, address: string, login: Login | null): boolean {
  const all = readAll(userDirs);
  const existed = all.delete(address);
  if (login !== null) {
    const token = login.token.reveal();
    all.set(address, login.kind === 'token' ? { token } : { token, agent: login.name, expires_at: login.expiresAt });
  }
  const path = loginsPath(userDirs);
  ensurePrivateDir(dirname(path));
  writePrivateFile(path, `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`);
  return existed;
}

function readAll(userDirs: UserDirs): Map<string, SavedLogin> {
  const path = loginsPath(userDirs);
  if (!checkPrivateFile(path)) return new Map();
  try {
    const all: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (typeof all === 'object' && all !== null) return new Map(Object.entries(all));
  } catch {
    // An invalid file contains no logins.
  }
  return new Map();
}
