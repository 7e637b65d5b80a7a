/** Builds the invocation that a command runs with. */

import type { Leasehold } from '../client/leasehold.ts';
import { UsageError } from '../platform/errors.ts';
import type { Invocation } from './command.ts';
import { connect } from './connect.ts';
import { createOutput } from './output/output.ts';
import { vaultHint } from './report-error.ts';
import type { Settings } from './settings/settings.ts';
import type { Terminal } from './terminal.ts';

const LOGOUT_TIMEOUT_MS = 3000;

/** `field` is the value of `--field`. */
type InvocationContext = Omit<Invocation, 'output' | 'connect' | 'reconnect' | 'close'> & {
  readonly field: string | null;
  /** Resolves the settings again. @throws UsageError */
  resolveSettings(): Promise<Settings>;
};

export function createInvocation(context: InvocationContext): Invocation {
  const { terminal, settings, signal, rest, field } = context;
  let connected: Leasehold | null = null;
  return {
    terminal,
    settings,
    signal,
    rest,
    output: createOutput(terminal, settings.format.value, field),
    connect(anonymous = false): Leasehold {
      if (!anonymous) assertCaller(settings, terminal);
      connected ??= connect(settings);
      return connected;
    },
    async reconnect() {
      const current = await context.resolveSettings();
      assertCaller(current, terminal);
      return connect(current);
    },
    async close() {
      if (settings.identity.value.kind !== 'agent') return;
      // A session that cannot be ended expires within the hour.
      await connected?.logOut({ signal: AbortSignal.timeout(LOGOUT_TIMEOUT_MS) }).catch(() => undefined);
    },
  };
}

/** @throws UsageError without an identity, or when an unread file might name another one */
function assertCaller({ address, dataDir, identity, skippedFile }: Settings, terminal: Terminal): void {
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
    vaultHint(terminal, address) ?? `No running service was found in the data directory ${dataDir.value}.`,
  );
}
