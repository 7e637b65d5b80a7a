/** `leasehold delete`: deletes one credential, or with --recursive everything below a prefix. */
import { LeaseholdError } from '../../client/errors.ts';
import type { Leasehold } from '../../client/leasehold.ts';
import { type CredentialPath, parsePath } from '../../core/path.ts';
import { toggle } from '../../flags/flag.ts';
import { CONFIRMATION_FLAGS, defineCommand, type Invocation } from '../command.ts';
import { nullIfMissing } from '../errors.ts';
import { withDenialHint } from '../explain-denial.ts';
import { pluralize } from '../output/cells.ts';
import { type Confirmation, confirmDestructive } from '../prompt.ts';
import { printNotice } from '../terminal.ts';

const COLUMNS = ['path', 'type', 'updated_at', 'access_count'];

export const remove = defineCommand({
  name: 'delete',
  about: [
    'With --recursive, deletes every credential below PATH/ that you may list, but not PATH itself, after showing the list and asking for confirmation.',
  ],
  arguments: [{ name: 'PATH', help: 'path of the credential, such as prod/db/password', count: 'one' }],
  flags: { recursive: toggle('delete everything below PATH/', { short: 'r' }), ...CONFIRMATION_FLAGS },
  examples: [
    { line: 'leasehold delete old/shop --recursive --dry-run', does: 'show what would be deleted below old/shop/' },
  ],
  async run(invocation, { recursive: isRecursive, ...confirmation }, text) {
    const path = parsePath(isRecursive ? text.replace(/\/$/, '') : text, 'PATH');
    const vault = invocation.connect();
    if (isRecursive) await removeBelow(invocation, confirmation, vault, `${path}/`);
    else await removeOne(invocation, confirmation, vault, path);
  },
});

async function removeOne(
  invocation: Invocation,
  confirmation: Confirmation,
  vault: Leasehold,
  path: CredentialPath,
): Promise<void> {
  const { terminal, signal } = invocation;
  const describe = async (): Promise<string> => {
    const reading = vault.credentials.readMetadata(path, { signal });
    const { versions } = await withDenialHint(invocation, { action: 'list', path }, reading);
    const { meta } = await vault.leases.list({ path, status: 'active', limit: 1 }, { signal });
    const leases = pluralize(meta.total, 'active lease');
    return `${path}: ${pluralize(versions.length, 'version')} and ${leases} will be deleted.`;
  };
  if (!(await confirmDestructive(invocation, confirmation, describe, 'Delete it?'))) return;
  await withDenialHint(invocation, { action: 'delete', path }, vault.credentials.delete(path, { signal }));
  printNotice(terminal, `Deleted ${path}.`);
}

/** Deletes only what was listed; credentials stored in the meantime stay. */
async function removeBelow(
  invocation: Invocation,
  confirmation: Confirmation,
  vault: Leasehold,
  prefix: string,
): Promise<void> {
  const { terminal, signal, output } = invocation;
  const all = await Array.fromAsync(vault.credentials.listAll({}, { signal }));
  const found = all.filter(({ path }) => path.startsWith(prefix));
  if (found.length === 0) throw new LeaseholdError('NOT_FOUND', `No credentials below ${prefix} that you may list.`);
  const describe = async (): Promise<string> => {
    await output.records(found, COLUMNS, null);
    return `${pluralize(found.length, 'credential')} below ${prefix} will be deleted, and all their leases revoked.`;
  };
  if (!(await confirmDestructive(invocation, confirmation, describe, 'Delete?'))) return;
  let deleted = 0;
  try {
    for (const { path } of found) {
      // Another caller may have deleted it since it was listed.
      const deleting = nullIfMissing(vault.credentials.delete(path, { signal }));
      await withDenialHint(invocation, { action: 'delete', path }, deleting);
      deleted += 1;
    }
  } finally {
    printNotice(terminal, `Deleted ${deleted} of ${pluralize(found.length, 'credential')} below ${prefix}.`);
  }
}
