/**
 * Finds names for completion: of credentials, agents and policies from the service, and of agents with a local key.
 * Names go into a command line, so only valid ones are returned.
 */
import { readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Leasehold } from '../../client/leasehold.ts';
import { pathViolation } from '../../core/path.ts';
import { keyFileIn } from '../settings/data-dir.ts';
import { userKeyFile } from '../settings/identity.ts';
import { userDirsOf } from '../settings/resolve.ts';
import type { Settings } from '../settings/settings.ts';
import type { Terminal } from '../terminal.ts';
import type { NameKind } from './target.ts';

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const KEY_FILE_SUFFIX = /\.pem$/;

/** Agents whose keys are on this machine. */
export function ownAgents(settings: Settings, terminal: Terminal): string[] {
  const listed = (directory: string): string[] => {
    try {
      return readdirSync(directory);
    } catch {
      return []; // missing or not readable
    }
  };
  const usual = listed(dirname(userKeyFile(userDirsOf(terminal), 'any'))).filter((name) => KEY_FILE_SUFFIX.test(name));
  const served = listed(dirname(dirname(keyFileIn(settings.dataDir.value, 'any'))));
  return [...new Set([...usual.map((name) => name.replace(KEY_FILE_SUFFIX, '')), ...served])].filter((name) =>
    NAME.test(name),
  );
}

/** Names received before the signal aborts. Never rejects. */
export async function namesFrom(vault: Leasehold, noun: Exclude<NameKind, 'own agent'>, signal: AbortSignal) {
  const found: string[] = [];
  try {
    const { credentials, agents, policies } = vault;
    const options = { signal };
    const rows =
      noun === 'path'
        ? credentials.listAll({}, options)
        : noun === 'agent'
          ? agents.listAll(options)
          : policies.listAll(options);
    for await (const row of rows) found.push('path' in row ? row.path : row.name);
  } catch {
    // Unreachable, denied or too slow: return what was received.
  }
  return found.filter((name) => (noun === 'path' ? pathViolation(name) === null : NAME.test(name)));
}

/** Paths up to the next slash, like directories; descends further while there is only one. */
export function pathsFrom(paths: readonly string[], begun: string): string[] {
  const upTo = (length: number): string[] => {
    const cut = paths
      .filter((path) => path.startsWith(begun))
      .map((path) => {
        const slash = path.indexOf('/', length);
        return slash === -1 ? path : path.slice(0, slash + 1);
      });
    return [...new Set(cut)];
  };
  let offers = upTo(begun.length);
  for (let [only, another] = offers; only?.endsWith('/') && another === undefined; [only, another] = offers) {
    offers = upTo(only.length);
  }
  return offers.sort();
}
