/** The `login`, `logout` and `whoami` subcommands. */
import { LeaseholdError } from '../../client/errors.ts';
import type { Leasehold } from '../../client/leasehold.ts';
import { parsePrincipalName } from '../../core/names.ts';
import { UsageError } from '../../platform/errors.ts';
import { Secret } from '../../vault/credentials/credential.ts';
import { principalOf } from '../../vault/policies/policy.ts';
import { type Command, defineCommand } from '../command.ts';
import { connect } from '../connect.ts';
import { valueInArguments } from '../errors.ts';
import { readInput } from '../input.ts';
import { askHidden, type Question } from '../prompt.ts';
import { loginsPath, readLogin, writeLogin } from '../settings/own-identity.ts';
import { type OwnIdentity, type Settings, titleOf } from '../settings/settings.ts';
import { printNotice } from '../terminal.ts';

/** Identifies the caller: an agent and the end of its session, or the administrator. @throws LeaseholdError */
export async function identify(
  vault: Leasehold,
  signal: AbortSignal,
): Promise<{ name: string; expiresAt: string | null }> {
  try {
    const { agent_name, expires_at } = await vault.readSession({ signal });
    return { name: principalOf(parsePrincipalName(agent_name, 'agent_name')), expiresAt: expires_at };
  } catch (error) {
    // The administrator has no session: the status is not 401, unlike for an unknown token.
    if (!(error instanceof LeaseholdError) || error.status === 401 || error.status === null) throw error;
    await vault.policies.list({ limit: 1 }, { signal });
    return { name: 'admin', expiresAt: null };
  }
}

const whoami = defineCommand({
  name: 'whoami',
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
  },
});

const login = defineCommand({
  name: 'login',
  about: [
    'With --agent NAME, logs in with the agent’s key and saves the session, which lasts up to an hour, or for an operator half an hour. Otherwise prompts for a token, checks it and saves it. Both are saved in a file that only you can read, until leasehold logout.',
    'Without a saved login, an agent logs in for each command and its session ends with the command.',
  ],
  arguments: [{ name: 'FROM', help: '- to read a token from standard input (default: prompt)', count: 'optional' }],
  takesValue: true,
  examples: {
    'leasehold login --agent deploy-bot': 'save a session for deploy-bot',
    'leasehold login --address https://vault.example.org': 'prompt for a token for this server',
  },
  printsNoRecords: true,
  async run({ terminal, settings, signal }, _flags, from) {
    if (from !== null && from !== '-') throw valueInArguments();
    const address = settings.address.value;
    const setting = settings.identity.value;
    const isAgent = setting.kind === 'agent' || (setting.kind === 'session' && setting.keyFile !== null);
    if (from === null && isAgent) {
      const before = readLogin(terminal, address);
      const agent = { kind: 'agent', name: setting.name, keyFile: setting.keyFile ?? '' } as const;
      const { session_id, agent_name, expires_at } = await connectAs(settings, agent).logIn({ signal });
      try {
        writeLogin(terminal, address, { ...agent, kind: 'session', token: session_id, expiresAt: expires_at });
      } catch (error) {
        // A session that cannot be saved is useless.
        await connectAs(settings, { kind: 'token', token: session_id }).logOut({ signal });
        throw error;
      }
      if (before?.kind === 'session') await connectAs(settings, { ...before, kind: 'token' }).logOut({ signal });
      return printNotice(terminal, `Logged in to ${address} as ${titleOf(agent_name)} until ${expires_at}.`);
    }
    const isGiven = setting.kind === 'token' && ['flag', 'environment'].includes(settings.identity.level);
    const token =
      from === '-'
        ? await readPipedToken({ terminal, signal })
        : isGiven
          ? setting.token
          : await askHidden({ terminal, signal }, `Token for ${address}`);
    const { name } = await identify(connectAs(settings, { kind: 'token', token }), signal);
    writeLogin(terminal, address, { kind: 'token', token });
    printNotice(terminal, `Logged in to ${address} as ${name}. The token is saved in ${loginsPath(terminal)}.`);
  },
});

const logout = defineCommand({
  name: 'logout',
  printsNoRecords: true,
  async run({ terminal, settings, signal }) {
    const address = settings.address.value;
    const saved = readLogin(terminal, address);
    const existed = writeLogin(terminal, address, null);
    if (!existed) throw new UsageError(`not logged in to ${address}`);
    if (saved?.kind === 'session') await connectAs(settings, { ...saved, kind: 'token' }).logOut({ signal });
    printNotice(terminal, `Logged out of ${address}.`);
  },
});

/** @throws UsageError, the signal's reason */
async function readPipedToken(question: Question): Promise<Secret> {
  const text = (await readInput(question, '-', 1)).toString('latin1').trim();
  if (/^[\x21-\x7e]{16,512}$/.test(text)) return new Secret(text);
  throw new UsageError('standard input does not contain a Leasehold token (lha_… or lhs_…)');
}

function connectAs(settings: Settings, value: OwnIdentity): Leasehold {
  return connect({ ...settings, identity: { ...settings.identity, value } });
}

export const COMMANDS: readonly Command[] = [login, logout, whoami];
