/** `leasehold delete`: deletes one credential, or with --recursive everything below a prefix. */
import { LeaseholdError } from '../../client/errors.ts';
import type { Leasehold } from '../../client/leasehold.ts';
import type { ListedCredential } from '../../client/types.ts';
import { type CredentialPath, parsePath } from '../../core/path.ts';
import { defineCommand, type Invocation } from '../command.ts';
import { EXIT } from '../errors.ts';
import { withDenialHint } from '../explain-denial.ts';
import { CONFIRMATION_FLAGS, toggle } from '../flags.ts';
import { pluralize } from '../output/cells.ts';
import { toTable } from '../output/table.ts';
import { type Confirmation, confirm, confirmDestructive } from '../prompt.ts';
import { hasColours, printNotice } from '../terminal.ts';

const COLUMNS = ['path', 'type', 'updated_at', 'access_count'];
const MAX_ROWS_SHOWN = 200;

export const remove = defineCommand({
  name: 'delete',
  summary: 'Delete a credential with all its versions, and revoke its leases',
  about: [
    'With --recursive, deletes every credential below PATH/ that you may list, but not PATH itself, after showing the list and asking for confirmation.',
  ],
  arguments: [
    { name: 'PATH', help: 'path of the credential, such as prod/db/password', count: 'one', completes: 'path' },
  ],
  flags: { recursive: toggle('delete everything below PATH/', { short: 'r' }), ...CONFIRMATION_FLAGS },
  examples: [
    { line: 'leasehold delete old/shop --recursive --dry-run', does: 'show what would be deleted below old/shop/' },
  ],
  callsService: true,
  printsRecords: true,
  async run(invocation, { recursive: isRecursive, ...confirmation }, text) {
    const path = parsePath(isRecursive ? text.replace(/\/$/, '') : text, 'PATH');
    const vault = invocation.connect();
    return isRecursive
      ? removeBelow(invocation, confirmation, vault, `${path}/`)
      : removeOne(invocation, confirmation, vault, path);
  },
});

async function removeOne(
  invocation: Invocation,
  confirmation: Confirmation,
  vault: Leasehold,
  path: CredentialPath,
): Promise<number> {
  const { terminal, signal } = invocation;
  const describe = async (): Promise<string> => {
    const reading = vault.credentials.readMetadata(path, { signal });
    const { versions } = await withDenialHint(invocation, { action: 'list', path }, reading);
    const { meta } = await vault.leases.list({ path, status: 'active', limit: 1 }, { signal });
    const leases = pluralize(meta.total, 'active lease');
    return `${path}: ${pluralize(versions.length, 'version')} and ${leases} will be deleted.`;
  };
  const ended = await confirmDestructive(invocation, confirmation, describe, 'Delete it?');
  if (ended !== null) return ended;
  await withDenialHint(invocation, { action: 'delete', path }, vault.credentials.delete(path, { signal }));
  printNotice(terminal, `Deleted ${path}.`);
  return EXIT.OK;
}

/** Deletes only what was listed; credentials stored in the meantime stay. */
async function removeBelow(
  invocation: Invocation,
  confirmation: Confirmation,
  vault: Leasehold,
  prefix: string,
): Promise<number> {
  const { terminal, signal, output } = invocation;
  const all = await Array.fromAsync(vault.credentials.listAll({}, { signal }));
  const found = all.filter(({ path }) => path.startsWith(prefix));
  if (found.length === 0) throw new LeaseholdError('NOT_FOUND', `No credentials below ${prefix} that you may list.`);
  const sentence = `${pluralize(found.length, 'credential')} below ${prefix} will be deleted, and ${found.length === 1 ? 'its' : 'their'} leases revoked.`;
  if (confirmation['dry-run']) {
    await output.records(found, COLUMNS, null);
    printNotice(terminal, `${sentence} Nothing was done.`);
    return EXIT.OK;
  }
  if (!confirmation.yes) {
    showPlan(invocation, found);
    if (!(await confirm({ terminal, signal }, `${sentence} Delete ${found.length === 1 ? 'it' : 'them'}?`))) {
      printNotice(terminal, 'Nothing was done.');
      return EXIT.NEGATIVE;
    }
  }
  let deleted = 0;
  try {
    for (const { path } of found) {
      await withDenialHint(invocation, { action: 'delete', path }, deleteIfThere(vault, path, signal));
      deleted += 1;
    }
  } finally {
    printNotice(terminal, `Deleted ${deleted} of ${pluralize(found.length, 'credential')} below ${prefix}.`);
  }
  return EXIT.OK;
}

/** A credential that another caller deleted since it was listed is not an error. */
async function deleteIfThere(vault: Leasehold, path: string, signal: AbortSignal): Promise<void> {
  try {
    await vault.credentials.delete(path, { signal });
  } catch (error) {
    if (!(error instanceof LeaseholdError) || error.code !== 'NOT_FOUND') throw error;
  }
}

function showPlan({ terminal }: Invocation, found: readonly ListedCredential[]): void {
  const { stderr } = terminal;
  const style = { isColoured: hasColours(terminal, stderr), width: stderr.columns ?? null };
  stderr.write(toTable(found.slice(0, MAX_ROWS_SHOWN), COLUMNS, style));
  if (found.length > MAX_ROWS_SHOWN)
    printNotice(terminal, `… and ${found.length - MAX_ROWS_SHOWN} more: see --dry-run.`);
}
