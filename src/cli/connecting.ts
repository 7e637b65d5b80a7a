/** The service, as whoever the settings say. A session that a command began ends with it. */

import { LeaseholdError } from '../client/errors.ts';
import { fileSigner, Leasehold } from '../client/leasehold.ts';
import { Mistake } from './mistake.ts';
import { fetchFromOwnService } from './proof.ts';
import type { Settings } from './settings/settings.ts';
import { unixFetch } from './unixsocket.ts';

export interface Connected {
  readonly vault: Leasehold;
  /** Ends the session that was begun for the command, if one was. Never rejects. */
  close(): Promise<void>;
}

const CLOSES_WITHIN_MS = 3000;

/** @throws Mistake */
export function connect(settings: Settings): Connected {
  const { address, identity, ownService, timeoutSeconds, allowsInsecureHttp } = settings;
  const socket = address.value.startsWith('unix:') ? address.value.slice('unix:'.length) : null;
  const who = identity.value;
  const direct = socket === null ? fetch : unixFetch(socket);
  try {
    const vault = new Leasehold({
      address: socket === null ? address.value : 'http://localhost',
      timeoutMs: Math.round(timeoutSeconds.value * 1000),
      insecureHttp: allowsInsecureHttp,
      fetch: ownService === null ? direct : fetchFromOwnService(ownService, direct),
      ...(who.kind === 'agent' ? { agent: { name: who.name, sign: fileSigner(who.keyFile) } } : {}),
      ...(who.kind === 'token' || who.kind === 'session' ? { token: who.token } : {}),
    });
    const close = who.kind === 'agent' ? () => endSession(vault) : () => Promise.resolve();
    return { vault, close };
  } catch (error) {
    if (error instanceof LeaseholdError) throw new Mistake(wordOption(error, settings));
    throw error;
  }
}

/** As the command calls it, by where it is from. */
function wordOption({ message, option }: LeaseholdError, { address, identity, timeoutSeconds }: Settings): string {
  const from = { address: address.by, token: identity.by, timeoutMs: timeoutSeconds.by };
  const found = Object.entries(from).find(([name]) => name === option);
  if (found === undefined) return message;
  const rule = message.slice(`${option}: `.length);
  return `${found[1]}: ${rule.replace('allow it with insecureHttp', 'allow it with --insecure-http')}`;
}

async function endSession(vault: Leasehold): Promise<void> {
  // One that can't be ended ends by itself within the hour.
  await vault.logOut({ signal: AbortSignal.timeout(CLOSES_WITHIN_MS) }).catch(() => undefined);
}
