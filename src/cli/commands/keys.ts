/** The `key slot …`, `key rotate`, `lock` and `unlock` subcommands. */

import { join } from 'node:path';
import { isLoopbackHost } from '../../core/ip-network.ts';
import { newPassphraseParameters, slotPrivateKey, slotPublicKey } from '../../crypto/key-slots.ts';
import { newShares, parseShare } from '../../crypto/shares.ts';
import { parseRootKey } from '../../crypto/vault-keys.ts';
import { parseField } from '../../engine/field.ts';
import { choice, type FlagValues, text, toggle, wholeNumber, withoutNulls } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { quoteWord } from '../../platform/installation.ts';
import { Secret } from '../../vault/credentials/credential.ts';
import { isAttended, KeySlot, SLOT_KINDS, type SlotKind } from '../../vault/keys/keyset.ts';
import { CONFIRMATION_FLAGS, type Command, defineCommand, type Invocation } from '../command.ts';
import { EXIT } from '../errors.ts';
import { describeSlots, readSecretFile, slotSecretOf } from '../passphrase.ts';
import { askHidden, confirmDestructive } from '../prompt.ts';
import type { Settings } from '../settings/settings.ts';
import { printNotice } from '../terminal.ts';

const NAME = { name: 'NAME', help: 'name of the key slot', count: 'one' } as const;
const COLUMNS = ['name', 'kind', 'created_at'];
const PASSPHRASE_FILE = text('FILE', 'read the passphrase from this file; - for standard input');

const add = defineCommand({
  name: 'key slot add',
  about: [
    'Any one slot opens the vault, and losing the others is harmless. The kinds file, systemd, transit and aws-kms open it unattended at startup; passphrase and shamir need leasehold unlock.',
    'This command computes the secret of a passphrase, or makes the shares, on this machine; the server receives only a public key. Each share is printed once.',
  ],
  arguments: [{ name: 'NAME', help: 'name of the new slot: letters, digits, . _ and -', count: 'one' }],
  flags: {
    kind: choice('KIND', SLOT_KINDS, 'kind of the slot (default passphrase)'),
    key: text('KEY', 'for transit and aws-kms: the name of the key there; for systemd: the name of the credential'),
    'passphrase-file': PASSPHRASE_FILE,
    shares: wholeNumber('for shamir: the number of shares (default 5)'),
    threshold: wholeNumber('for shamir: how many shares open the vault (default 3)'),
  },
  examples: {
    'leasehold key slot add recovery --kind shamir --shares 5 --threshold 3': 'print five shares',
    'leasehold key slot add kms --kind aws-kms --key alias/leasehold': 'open the vault with AWS KMS',
  },
  async run(invocation, flags, given) {
    const { signal, output } = invocation;
    const name = parseField(KeySlot.fields.name, given, 'NAME');
    const kind = flags.kind ?? 'passphrase';
    rejectForeignFlags(kind, flags);
    const vault = invocation.connect();
    if (kind === 'shamir') {
      const [count, threshold] = [flags.shares ?? 5, flags.threshold ?? 3];
      if (count > 255 || threshold < 2 || threshold > count) {
        throw new UsageError('--threshold must be at least 2 and at most --shares, and --shares at most 255');
      }
      const { secret, group, digests, shares } = await newShares(count, threshold);
      const parameters = { group, threshold, shares: count, digests };
      const body = { name, kind, public_key: publicKeyOf(secret), parameters };
      await vault.keys.addSlot(body, { signal });
      const rows = shares.map((share, index) => ({ group, share: index + 1, text: share.reveal() }));
      await output.records(rows, ['group', 'share', 'text'], '');
      printNotice(invocation.terminal, `Any ${threshold} of these shares open the vault. They are not shown again.`);
      return;
    }
    if (kind === 'passphrase') {
      const parameters = newPassphraseParameters();
      const secret = await slotSecretOf(invocation, { kind, name, parameters }, flags['passphrase-file'], true);
      await output.record(
        await vault.keys.addSlot({ name, kind, public_key: publicKeyOf(secret), parameters }, { signal }),
      );
      return;
    }
    const { key } = flags;
    await output.record(await vault.keys.addSlot({ name, kind, ...withoutNulls({ key }) }, { signal }));
  },
});

const publicKeyOf = (secret: Uint8Array): string => slotPublicKey(slotPrivateKey(secret));

/** @throws UsageError for a flag of another kind */
function rejectForeignFlags(kind: SlotKind, flags: Readonly<Record<string, unknown>>): void {
  const own: Readonly<Partial<Record<SlotKind, readonly string[]>>> = {
    passphrase: ['passphrase-file'],
    shamir: ['shares', 'threshold'],
    transit: ['key'],
    'aws-kms': ['key'],
    systemd: ['key'],
  };
  for (const name of ['key', 'passphrase-file', 'shares', 'threshold']) {
    if (flags[name] === null || own[kind]?.includes(name)) continue;
    throw new UsageError(`--${name} cannot be used with --kind ${kind}`);
  }
}

const list = defineCommand({
  name: 'key slot list',
  async run(invocation) {
    await invocation.output.records(await invocation.connect().keys.slots(invocation), COLUMNS, 'No key slots.');
  },
});

const remove = defineCommand({
  name: 'key slot remove',
  about: [
    'Test the other slots first with leasehold key slot test: without a slot that opens, the vault is lost at the next restart.',
    'The slot still opens copies of the database and backups from before its removal. Keep its secret as long as you keep them. If its secret was disclosed, rotate the keys afterwards: leasehold key rotate --root, then leasehold key rotate.',
  ],
  arguments: [NAME],
  flags: CONFIRMATION_FLAGS,
  printsNoRecords: true,
  async run(invocation, flags, given) {
    const { signal } = invocation;
    const name = parseField(KeySlot.fields.name, given, 'NAME');
    const vault = invocation.connect();
    const describe = async (): Promise<string> => {
      const others = (await vault.keys.slots({ signal })).filter((slot) => slot.name !== name);
      return `The slot ${name} will no longer open the vault. Other slots: ${describeSlots(others) || 'none'}.`;
    };
    if (!(await confirmDestructive(invocation, flags, describe, 'Remove it?'))) return;
    await vault.keys.removeSlot(name, invocation);
    printNotice(invocation.terminal, `Removed the key slot ${name}.`);
  },
});

const test = defineCommand({
  name: 'key slot test',
  about: [
    'Asks for the passphrase of a passphrase slot, which stays on this machine. A Shamir slot cannot be tested, because several operators hold its shares. The exit code is 3 if the slot does not open the vault.',
  ],
  arguments: [NAME],
  flags: { 'passphrase-file': PASSPHRASE_FILE },
  async run(invocation, flags, given) {
    const { signal } = invocation;
    const name = parseField(KeySlot.fields.name, given, 'NAME');
    const vault = invocation.connect();
    const publicKey = await publicKeyFor(invocation, name, flags['passphrase-file']);
    const result = await vault.keys.testSlot(name, publicKey, { signal });
    await invocation.output.record({ name, ...result });
    return result.opens ? EXIT.OK : EXIT.NEGATIVE;
  },
});

async function publicKeyFor(invocation: Invocation, name: string, from: string | null): Promise<string | null> {
  const slots = await invocation.connect().keys.slots(invocation);
  const slot = slots.find((each) => each.name === name);
  if (slot?.kind === 'shamir') throw new UsageError(`${name} is a Shamir slot, whose shares key slot test cannot test`);
  return slot?.kind === 'passphrase' ? publicKeyOf(await slotSecretOf(invocation, slot, from, false)) : null;
}

const rotate = defineCommand({
  name: 'key rotate',
  about: [
    'Without a flag, new values are encrypted under a new key, and the previous ones are re-encrypted in the background. --root replaces the root key and wraps it for every slot. --audit records an entry that ends the current audit key. Auditors need the new key for later entries.',
  ],
  flags: { root: toggle('replace the root key'), audit: toggle('replace the key of the audit log') },
  async run(invocation, flags) {
    if (flags.root && flags.audit) throw new UsageError('give --root or --audit, not both');
    const which = flags.root ? 'root' : flags.audit ? 'audit' : 'data';
    await invocation.output.record(await invocation.connect().keys.rotate(which, invocation));
  },
});

const lock = defineCommand({
  name: 'lock',
  about: [
    'Every later request fails with VAULT_LOCKED until leasehold unlock, or until a restart opens a slot. Without a slot that opens, the vault is lost: test one first with leasehold key slot test.',
  ],
  flags: CONFIRMATION_FLAGS,
  async run(invocation, flags) {
    const vault = invocation.connect();
    const describe = async (): Promise<string> => {
      const slots = await vault.keys.slots(invocation);
      return `The vault will serve nothing until one of these slots opens it: ${describeSlots(slots)}.`;
    };
    if (!(await confirmDestructive(invocation, flags, describe, 'Lock it?'))) return;
    await invocation.output.record(await vault.keys.lock(invocation));
  },
});

const UNLOCK_FLAGS = {
  slot: text('NAME', 'key slot to open (default: the only one)'),
  'passphrase-file': text('FILE', 'read the passphrase from this file; - for standard input'),
  'share-file': text('FILE', 'read one share from this file; - for standard input'),
  'root-key-file': text('FILE', 'open the slot of this root key'),
};

const unlock = defineCommand({
  name: 'unlock',
  about: [
    'Works over a Unix socket or from the machine of the server only. The passphrase stays on this machine. The secret that is derived from it is sent to the server of the data directory, after that server has proved itself, or to the address that you name. It is never sent to the default address. Shares are given one at a time, by any of their holders, within ten minutes of each other.',
  ],
  flags: UNLOCK_FLAGS,
  examples: {
    'leasehold unlock': 'ask for the passphrase or a share',
    'leasehold unlock --address unix:/run/leasehold/socket': "give a share from an account other than the server's",
  },
  async run(invocation, flags) {
    const { terminal, signal, output } = invocation;
    const files = [flags['passphrase-file'], flags['share-file'], flags['root-key-file']];
    if (files.filter((file) => file !== null).length > 1) throw new UsageError('give one file only');
    assertMayReceiveSecret(invocation.settings);
    const secret = await readSecret(invocation, flags);
    const progress = await invocation.connect(true).keys.unlock(secret, { signal });
    await output.record(progress);
    if (progress.status === 'locked')
      printNotice(terminal, `Given: ${progress.shares_given} of ${progress.shares_needed} shares.`);
    if (progress.status === 'rolled_back')
      printNotice(terminal, 'The audit log has lost entries. See leasehold audit accept-rollback --dry-run.');
  },
});

/**
 * INVARIANT: a secret is sent only to a server that proved itself by its data directory, or to a loopback address that
 * the user named, trusts or is logged in to. Any program may listen on the default address. @throws UsageError
 */
function assertMayReceiveSecret({ address, dataDir }: Settings): void {
  const { value, source, level } = address;
  if (level === 'default') {
    throw new UsageError(
      `No server has published its address in ${dataDir.value}, and another program may listen on ${value}. Start the server, or name its address with --address`,
    );
  }
  if (value.startsWith('unix:') || isLoopbackHost(URL.parse(value)?.hostname ?? '')) return;
  throw new UsageError(
    `${source}: ${value} is not an address of this machine. Run leasehold unlock on the machine of the server, with --address unix:/PATH or a loopback address`,
  );
}

/** @throws UsageError */
async function readSecret(invocation: Invocation, flags: FlagValues<typeof UNLOCK_FLAGS>): Promise<Secret> {
  const { 'root-key-file': rootKeyFile, 'share-file': shareFile } = flags;
  if (rootKeyFile !== null) {
    const key = parseRootKey(await readSecretFile(invocation, rootKeyFile));
    if (key === null) throw new UsageError(`${rootKeyFile} must contain 32 bytes as base64, on one line`);
    return new Secret(Buffer.from(key).toString('base64'));
  }
  if (shareFile !== null) return checkedShare(new Secret(await readSecretFile(invocation, shareFile)));
  const slots = await invocation.connect(true).keys.attendedSlots(invocation);
  const fitting = slots.filter(({ name, kind }) => (flags.slot === null ? isAttended(kind) : name === flags.slot));
  const wanted = flags['passphrase-file'] === null ? fitting : fitting.filter(({ kind }) => kind === 'passphrase');
  const [slot, ...others] = wanted;
  if (slot === undefined || others.length > 0) {
    const names = slots.flatMap(({ name, kind }) => (isAttended(kind) ? [name] : [])).join(', ');
    if (names === '')
      throw new UsageError('no key slot takes a passphrase or a share', unattendedHint(invocation.settings));
    throw new UsageError(`--slot must name one of the key slots that open manually: ${names}`);
  }
  if (slot.kind === 'shamir') return checkedShare(await askHidden(invocation, `Share of the key slot ${slot.name}`));
  if (slot.kind !== 'passphrase')
    throw new UsageError(
      `${slot.name} is a slot of the kind ${slot.kind}, which opens unattended`,
      unattendedHint(invocation.settings),
    );
  const bytes = await slotSecretOf(invocation, slot, flags['passphrase-file'], false);
  return new Secret(Buffer.from(bytes).toString('base64'));
}

/** How a vault opens that was locked and has only slots that open unattended. */
function unattendedHint({ dataDir }: Settings): string {
  const file = quoteWord(join(dataDir.value, 'root.key'));
  return `Restart the server, which opens it, or give its root key: leasehold unlock --root-key-file ${file}`;
}

/** @throws UsageError for a mistyped share, which is not sent */
function checkedShare(given: Secret): Secret {
  const words = given.reveal().trim();
  if (parseShare(words) !== null) return new Secret(words);
  throw new UsageError('this is not a share: a letter is missing or was mistyped');
}

export const COMMANDS: readonly Command[] = [add, list, remove, test, rotate, lock, unlock];
