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
import { writeLogin } from './settings/identity.ts';
import { type Login, resolveSettings, type Settings, userDirsOf } from './settings/settings.ts';
import type { Terminal } from './terminal.ts';

const LOGOUT_TIMEOUT_MS = 3000;

type InvocationContext = Omit<Invocation, 'output' | 'connect' | 'reconnect' | 'close' | 'announceApproval'> & {
  readonly field: string | null;
  readonly waitsForApprovals: boolean;
  /** Resolves the settings again. @throws UsageError */
  resolveSettings(): Promise<Settings>;
};

const NEVER = new AbortController().signal;

/** Resolves to the exit code. `interruptible` returns a signal that aborts on Ctrl-C and SIGTERM, like in `main`. */
export async function runCommandLine(
  { command, given, operands, rest }: CommandLine,
  terminal: Terminal,
  interruptible: (endsItself: boolean) => AbortSignal,
): Promise<number> {
  let settings: Settings | null = null;
  let invocation: Invocation | null = null;
  try {
    const flags = readFlags(command.flags ?? {}, given, terminal.environment);
    const values = (command.arguments ?? []).map(({ count }, at) =>
      count === 'many' ? operands.slice(at) : (operands[at] ?? null),
    );
    const last = (name: string): string | null => given.get(name)?.at(-1) ?? null;
    const resolve = (): Promise<Settings> => resolveSettings(last, terminal);
    settings = await resolve();
    invocation = createInvocation({
      terminal,
      settings,
      signal: command.handlesSignals === true ? NEVER : interruptible(command.endsItself === true),
      rest,
      field: last('field'),
      waitsForApprovals: command.returnsPending !== true,
      resolveSettings: resolve,
    });
    const code = await command.run(invocation, flags, ...values);
    return typeof code === 'number' ? code : EXIT.OK;
  } catch (error) {
    return reportError({ terminal, noun: command.name.split(' ')[0] ?? '' }, error, settings);
  } finally {
    await invocation?.close();
  }
}

function createInvocation(context: InvocationContext): Invocation {
  const { terminal, settings, signal, rest, field } = context;
  let connected: Leasehold | null = null;
  const announceApproval = approvalAnnouncer(terminal);
  const connectAs = (current: Settings) => connect(current, context.waitsForApprovals ? announceApproval : undefined);
  return {
    terminal,
    settings,
    signal,
    rest,
    output: createOutput(terminal, settings.format.value, field),
    announceApproval,
    connect(anonymous = false): Leasehold {
      if (!anonymous) assertCaller(settings);
      connected ??= connectAs(settings);
      return connected;
    },
    async reconnect() {
      const current = await context.resolveSettings();
      assertCaller(current);
      return connectAs(current);
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
  writeLogin(userDirsOf(terminal), address.value, { ...session, expiresAt: expires_at });
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
  throw new UsageError(
    `Not logged in to ${address.value} (${address.source}). Use --agent NAME, --token-file FILE, or run \`leasehold login\``,
    `No running server was found in the data directory ${dataDir.value}.`,
  );
}
