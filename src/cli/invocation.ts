/** Runs a command: resolves its settings, builds its invocation, and reports its error. */
import type { CallOptions } from '../client/api-client.ts';
import type { Leasehold } from '../client/leasehold.ts';
import { OPERATOR_PREFIX } from '../core/names.ts';
import { readFlags } from '../flags/command-line.ts';
import { UsageError } from '../platform/errors.ts';
import { OPERATOR_IDLE_MS } from '../vault/sessions/session-operations.ts';
import { approvalAnnouncer } from './call-hints.ts';
import type { Invocation } from './command.ts';
import { connect } from './connect.ts';
import { EXIT } from './errors.ts';
import { createOutput } from './output/output.ts';
import type { CommandLine } from './program.ts';
import { reportError } from './report-error.ts';
import { writeLogin } from './settings/own-identity.ts';
import { type Login, resolveSettings, type Settings } from './settings/settings.ts';
import type { Terminal } from './terminal.ts';

const LOGOUT_TIMEOUT_MS = 3000;

const NEVER = new AbortController().signal;

/** Resolves to the exit code. `interruptible` returns a signal that aborts on Ctrl-C and SIGTERM, like in `main`. */
export async function runCommandLine(
  line: CommandLine,
  terminal: Terminal,
  interruptible: (endsItself: boolean) => AbortSignal,
): Promise<number> {
  const { command, given, operands } = line;
  let settings: Settings | null = null;
  let invocation: Invocation | null = null;
  try {
    const flags = readFlags(command.flags ?? {}, given, terminal.environment);
    const values = (command.arguments ?? []).map(({ count }, at) =>
      count === 'many' ? operands.slice(at) : (operands[at] ?? null),
    );
    settings = await resolveSettings(flagReader(line), terminal);
    const signal = command.handlesSignals === true ? NEVER : interruptible(command.endsItself === true);
    invocation = createInvocation(line, terminal, settings, signal);
    const code = await command.run(invocation, flags, ...values);
    return typeof code === 'number' ? code : EXIT.OK;
  } catch (error) {
    return reportError({ terminal, noun: command.name.split(' ')[0] ?? '' }, error, settings);
  } finally {
    await invocation?.close();
  }
}

const flagReader =
  ({ given }: CommandLine) =>
  (name: string): string | null =>
    given.get(name)?.at(-1) ?? null;

function createInvocation(line: CommandLine, terminal: Terminal, settings: Settings, signal: AbortSignal): Invocation {
  const flag = flagReader(line);
  let connected: Leasehold | null = null;
  const announceApproval = approvalAnnouncer(terminal);
  const onApprovalPending = line.command.returnsPending === true ? undefined : announceApproval;
  return {
    terminal,
    settings,
    signal,
    rest: line.rest,
    output: createOutput(terminal, settings.format.value, flag('field')),
    announceApproval,
    connect(anonymous = false): Leasehold {
      if (!anonymous) assertCaller(settings);
      connected ??= connect(settings, onApprovalPending);
      return connected;
    },
    async reconnect() {
      const current = await resolveSettings(flag, terminal);
      assertCaller(current);
      return connect(current, onApprovalPending);
    },
    async close() {
      const who = settings.identity.value;
      const options = { signal: AbortSignal.timeout(LOGOUT_TIMEOUT_MS) };
      // If ending fails, the session expires within the hour. If renewal fails, it expires at its own time.
      if (who.kind === 'agent') await connected?.logOut(options).catch(() => undefined);
      if (connected !== null && who.kind === 'session' && isIdle(who))
        await renewLogin(connected, terminal, settings, who, options).catch(() => undefined);
    },
  };
}

type SavedSession = Extract<Login, { kind: 'session' }>;

function isIdle({ name, expiresAt }: SavedSession): boolean {
  return name.startsWith(OPERATOR_PREFIX) && Date.parse(expiresAt) - Date.now() < OPERATOR_IDLE_MS / 2;
}

async function renewLogin(
  vault: Leasehold,
  terminal: Terminal,
  { address }: Settings,
  session: SavedSession,
  options: CallOptions,
): Promise<void> {
  const { expires_at } = await vault.renewSession(options);
  writeLogin(terminal, address.value, { ...session, expiresAt: expires_at });
}

/** @throws UsageError without an identity, or when an unread file might name another one */
function assertCaller({ address, dataDir, identity, skippedFile }: Settings): void {
  const who = identity.value;
  if (skippedFile !== null && identity.level !== 'flag' && identity.level !== 'environment') {
    throw new UsageError(
      `${skippedFile.path} may select the identity, but it was not read: it ${skippedFile.reason}`,
      `Use --agent NAME or LEASEHOLD_TOKEN, or fix the file. ${skippedFile.hint}`,
    );
  }
  if (who.kind !== 'anonymous') return;
  if (address.level === 'default')
    throw new UsageError(
      `No running server was found in the data directory ${dataDir.value}`,
      'Start it: npm start in the checkout, or leasehold server. For one elsewhere: --address URL, and --agent NAME, --token-file FILE or leasehold login',
    );
  throw new UsageError(
    `Not logged in to ${address.value} (${address.source}). Use --agent NAME, --token-file FILE, or run \`leasehold login\``,
  );
}
