/** Commands on who asks: `login`, `logout`, `whoami`. */

import { LeaseholdError } from '../../client/errors.ts';
import type { Leasehold } from '../../client/leasehold.ts';
import { Secret } from '../../core/secret.ts';
import { UsageError } from '../../platform/errors.ts';
import type { Command } from '../command.ts';
import { connect } from '../connect.ts';
import { EXIT, valueInArguments } from '../errors.ts';
import { askHidden, type Question } from '../prompt.ts';
import { loginsPath, readLogin, writeLogin } from '../settings/logins.ts';
import { placesOf } from '../settings/resolve.ts';
import type { Identity, Settings } from '../settings/settings.ts';
import { readStandardInput } from '../standard-input.ts';
import { printNotice } from '../terminal.ts';

/** Who a token is: an agent, until when, or the administrator. @throws LeaseholdError */
export async function identify(
  vault: Leasehold,
  signal: AbortSignal,
): Promise<{ name: string; expiresAt: string | null }> {
  try {
    const { agent_name, expires_at } = await vault.readSession({ signal });
    return { name: `agent:${agent_name}`, expiresAt: expires_at };
  } catch (error) {
    // The administrator has no session, and says so otherwise than a token that is not known.
    if (!(error instanceof LeaseholdError) || error.status === 401 || error.status === null) throw error;
    await vault.policies.list({ limit: 1 }, { signal });
    return { name: 'admin', expiresAt: null };
  }
}

const whoami: Command = {
  name: 'whoami',
  summary: 'Shows as whom the service is asked, and where that was said',
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const { settings, signal } = invocation;
    const { name, expiresAt } = await identify(invocation.connect(), signal);
    const { address, identity } = settings;
    await invocation.output.record({
      name,
      from: identity.source,
      session_expires_at: expiresAt,
      address: address.value,
      address_from: address.source,
    });
    return EXIT.OK;
  },
};

const login: Command = {
  name: 'login',
  summary: 'Keeps a session, or a token, for the commands that follow',
  about: [
    'As an agent (--agent NAME) it logs in with the key and keeps the session, for an hour at most. Otherwise it asks for a token, which is not shown, tries it, and keeps it. Either lies in a file that only you can read, until leasehold logout.',
    'Without a login an agent logs in for each command, and its session ends with the command.',
  ],
  arguments: [{ name: 'FROM', help: '- for a token on standard input; left out, it is asked for', count: 'optional' }],
  takesValue: true,
  examples: [
    { line: 'leasehold login --agent deploy-bot', does: 'a session for deploy-bot' },
    { line: 'leasehold login --address https://vault.example.org', does: 'asks for a token for that service' },
  ],
  asksService: true,
  async run(invocation) {
    const { terminal, settings, signal } = invocation;
    const places = placesOf(terminal);
    const address = settings.address.value;
    const said = settings.identity.value;
    const agent =
      said.kind === 'session' && said.keyFile !== null
        ? { ...said, kind: 'agent' as const, keyFile: said.keyFile }
        : said;
    const from = invocation.optional('FROM');
    if (from !== null && from !== '-') throw valueInArguments();
    if (from === null && agent.kind === 'agent') {
      const before = readLogin(places, address);
      const { session_id, agent_name, expires_at } = await connect(as(settings, agent)).vault.logIn({ signal });
      try {
        writeLogin(places, address, { kind: 'session', agent: agent_name, token: session_id, expiresAt: expires_at });
      } catch (error) {
        // What cannot be kept is of no use to anybody.
        await endSession(settings, session_id, signal);
        throw error;
      }
      if (before?.kind === 'session') await endSession(settings, before.token, signal);
      printNotice(terminal, `Logged in to ${address} as agent ${agent_name} until ${expires_at}.`);
      return EXIT.OK;
    }
    const isGiven = said.kind === 'token' && ['flag', 'environment'].includes(settings.identity.level);
    const token =
      from === '-'
        ? await readPipedToken({ terminal, signal })
        : isGiven
          ? said.token
          : await askHidden({ terminal, signal }, `Token for ${address}`);
    const { name } = await tryToken(settings, token, signal);
    writeLogin(places, address, { kind: 'token', token });
    printNotice(terminal, `Logged in to ${address} as ${name}. The token is kept in ${loginsPath(places)}.`);
    return EXIT.OK;
  },
};

const logout: Command = {
  name: 'logout',
  summary: 'Forgets what login kept, and ends the session',
  asksService: true,
  async run({ terminal, settings, signal }) {
    const places = placesOf(terminal);
    const address = settings.address.value;
    const kept = readLogin(places, address);
    const wasThere = writeLogin(places, address, null);
    if (!wasThere) throw new UsageError(`there is no login for ${address}`);
    if (kept?.kind === 'session') await endSession(settings, kept.token, signal);
    printNotice(terminal, `Logged out of ${address}.`);
    return EXIT.OK;
  },
};

const MAX_TOKEN_BYTES = 1024;

/** A line. @throws UsageError, the signal's reason */
async function readPipedToken(question: Question): Promise<Secret> {
  const rule = 'standard input does not hold a Leasehold token (lha_… or lhs_…)';
  const text = (await readStandardInput(question, MAX_TOKEN_BYTES, rule)).toString('latin1').trim();
  if (!/^[\x21-\x7e]{16,512}$/.test(text)) throw new UsageError(rule);
  return new Secret(text);
}

/** @throws UsageError for a token that the service does not know */
async function tryToken(settings: Settings, token: Secret, signal: AbortSignal): Promise<{ name: string }> {
  try {
    return await identify(connect(as(settings, { kind: 'token', token })).vault, signal);
  } catch (error) {
    if (!(error instanceof LeaseholdError && error.status === 401)) throw error;
    throw new LeaseholdError('UNAUTHENTICATED', `${settings.address.value} does not accept this token.`);
  }
}

/** One that has ended already is none. @throws LeaseholdError */
async function endSession(settings: Settings, token: Secret, signal: AbortSignal): Promise<void> {
  try {
    await connect(as(settings, { kind: 'token', token })).vault.logOut({ signal });
  } catch (error) {
    if (!(error instanceof LeaseholdError && error.status === 401)) throw error;
  }
}

function as(settings: Settings, value: Identity): Settings {
  return { ...settings, identity: { ...settings.identity, value } };
}

export const SESSION_COMMANDS: readonly Command[] = [login, logout, whoami];
