/**
 * Names that begin as somebody typed: of credentials, agents and policies, from the service, and of agents whose keys are here. What
 * comes from the service is put into a command line: only what can be such a name is let through.
 */
import { readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Leasehold } from '../../client/leasehold.ts';
import { pathViolation } from '../../core/path.ts';
import { userKeyFile } from '../settings/identity.ts';
import { keyFileIn } from '../settings/local.ts';
import { placesOf } from '../settings/resolve.ts';
import type { Settings } from '../settings/settings.ts';
import type { Terminal } from '../terminal.ts';
import type { NameKind } from './target.ts';

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const IN_A_FILE = /\.pem$/;

/** Of agents whose keys lie on this machine. */
export function ownAgents(settings: Settings, terminal: Terminal): string[] {
  const listed = (folder: string): string[] => {
    try {
      return readdirSync(folder);
    } catch {
      return []; // it is not there, or it is not for us
    }
  };
  const usual = listed(dirname(userKeyFile(placesOf(terminal), 'any'))).filter((name) => IN_A_FILE.test(name));
  const served = listed(dirname(dirname(keyFileIn(settings.dataDir.value, 'any'))));
  return [...new Set([...usual.map((name) => name.replace(IN_A_FILE, '')), ...served])].filter((name) =>
    NAME.test(name),
  );
}

/** Those that come before the signal. Never rejects. */
export async function namesFrom(vault: Leasehold, noun: Exclude<NameKind, 'own agent'>, signal: AbortSignal) {
  const found: string[] = [];
  try {
    switch (noun) {
      case 'path':
        for await (const { path } of vault.credentials.listAll({}, { signal })) found.push(path);
        break;
      case 'agent':
        for await (const { name } of vault.agents.listAll({ signal })) found.push(name);
        break;
      case 'policy':
        for await (const { name } of vault.policies.listAll({ signal })) found.push(name);
    }
  } catch {
    // Nobody is there, nobody may ask, or it takes too long: what has come does.
  }
  return found.filter((name) => (noun === 'path' ? pathViolation(name) === null : NAME.test(name)));
}

/** Paths as far as the next slash, as a shell goes through folders; through folders of which there is only one it goes on. */
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
