/** Builds the invocation that a command runs with. */

import type { Leasehold } from '../client/leasehold.ts';
import { UsageError } from '../platform/errors.ts';
import type { Typed } from './arguments.ts';
import type { Invocation } from './command.ts';
import { connect, type ServiceConnection } from './connect.ts';
import { createOutput } from './output/output.ts';
import { vaultHint } from './report-error.ts';
import type { Settings } from './settings/settings.ts';
import type { Terminal } from './terminal.ts';

export function createInvocation(
  typed: Typed,
  settings: Settings,
  terminal: Terminal,
  signal: AbortSignal,
): Invocation {
  let connected: ServiceConnection | null = null;
  const argument = (name: string): readonly string[] => {
    const given = typed.arguments.get(name);
    if (given === undefined) throw new Error(`the command has no argument ${name}`);
    return given;
  };
  const flags = (name: string): readonly string[] => typed.flags.get(name) ?? [];
  return {
    terminal,
    settings,
    signal,
    output: createOutput(terminal, settings.format.value, flags('field').at(-1) ?? null),
    argument: (name) => argument(name)[0] ?? '',
    optional: (name) => argument(name)[0] ?? null,
    many: argument,
    flag: (name) => flags(name).at(-1) ?? null,
    flags,
    isOn: (name) => flags(name).length > 0,
    rest: typed.rest,
    connect(anonymous = false): Leasehold {
      if (!anonymous) assertCaller(settings, terminal);
      connected ??= connect(settings);
      return connected.vault;
    },
    async close() {
      await connected?.close();
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
