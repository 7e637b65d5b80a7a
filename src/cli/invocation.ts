/** A command as it was called: what was typed, what holds, and the way to the service. */

import type { Leasehold } from '../client/leasehold.ts';
import { UsageError } from '../platform/errors.ts';
import type { Typed } from './arguments.ts';
import type { Invocation } from './command.ts';
import { type Connected, connect } from './connect.ts';
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
  let connected: Connected | null = null;
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
    connect(asNobody = false): Leasehold {
      if (!asNobody) assertCaller(settings, terminal);
      connected ??= connect(settings);
      return connected.vault;
    },
    async close() {
      await connected?.close();
    },
  };
}

/** @throws UsageError where it is not known who asks, or somebody else might be taken for them */
function assertCaller({ address, dataDir, identity, unreadFile }: Settings, terminal: Terminal): void {
  const who = identity.value;
  if (unreadFile !== null && identity.level !== 'flag' && identity.level !== 'environment') {
    throw new UsageError(
      `who asks may stand in ${unreadFile.path}, which is not read: it ${unreadFile.why}`,
      `Say it: --agent NAME, or LEASEHOLD_TOKEN. ${unreadFile.hint}`,
    );
  }
  if (who.kind !== 'nobody') return;
  throw new UsageError(
    `Not logged in to ${address.value} (${address.source}). Use --agent NAME, --token-file FILE, or run \`leasehold login\``,
    vaultHint(terminal, address) ?? `A service on this machine would have its data directory in ${dataDir.value}.`,
  );
}
