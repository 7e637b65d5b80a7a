/**
 * The subcommands for exports, checkpoints and receipts of the audit log, and for an audit log that has lost entries.
 * SOURCE: docs/audit.md.
 */
import { createWriteStream, existsSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { LeaseholdError } from '../../client/errors.ts';
import type { ConsistencyProof, Leasehold } from '../../client/leasehold.ts';
import { type LogCheckpoint, parseCheckpoint } from '../../crypto/checkpoint.ts';
import { decodeHash, isConsistent } from '../../crypto/tree.ts';
import { text, toggle } from '../../flags/flag.ts';
import { errnoSuffix, StartupError, UsageError } from '../../platform/errors.ts';
import { publishNewFile, temporaryPath, writeNewFile, writeNewPrivateFile } from '../../platform/private-files.ts';
import { CONFIRMATION_FLAGS, type Command, defineCommand, type Invocation } from '../command.ts';
import { inputName, readTextInput } from '../input.ts';
import { escapeText } from '../output/cells.ts';
import { startProgress } from '../progress.ts';
import { confirmDestructive } from '../prompt.ts';
import { printNotice, type Terminal } from '../terminal.ts';

const checkpoint = defineCommand({
  name: 'audit checkpoint',
  about: [
    'Keep checkpoints where the host of the server cannot reach them: audit verify --checkpoint FILE, or scripts/verify_audit.py with an export, shows whether the audit log still extends them.',
  ],
  flags: {
    'public-key': toggle('print the public key of the checkpoints instead'),
    out: text(
      'FILE',
      'write to this new file instead of standard output: complete, or not at all; an existing file is never replaced',
    ),
  },
  examples: {
    'leasehold audit checkpoint --out "checkpoint-$(date -u +%Y%m%dT%H%M%SZ).txt"':
      'keep the newest checkpoint in a file with the time in its name',
  },
  printsNoRecords: true,
  async run(invocation, { 'public-key': wantsKey, out }) {
    const { connect, terminal, signal } = invocation;
    const file = newFile(invocation, out);
    const { note, verifier_key: key } = await connect().audit.readCheckpoint({ signal });
    const found = wantsKey ? `${key}\n` : note;
    if (file === null) printEvidence(terminal, found);
    else writeEvidence(file, found);
  },
});

/** Prints every byte to a pipe, and no control characters to a terminal. */
function printEvidence({ stdout }: Terminal, content: string): void {
  stdout.write(stdout.isTTY === true ? escapeText(content) : content);
}

/** @throws UsageError if the file exists or cannot be written */
function writeEvidence(file: string, content: string): void {
  try {
    writeNewPrivateFile(file, content);
  } catch (error) {
    throw toUsageError(error, file) ?? error;
  }
}

const receipt = defineCommand({
  name: 'audit receipt',
  about: ['A third party verifies it with the public key of the checkpoints alone: scripts/verify_audit.py --receipt.'],
  arguments: [{ name: 'SEQ', help: 'sequence number of the entry', count: 'one' }],
  printsNoRecords: true,
  async run({ connect, terminal, signal }, _flags, given) {
    if (!/^[1-9][0-9]{0,14}$/.test(given)) throw new UsageError('SEQ must be the number of an entry, 1 or more');
    const { receipt: proof } = await connect().audit.proveEntry(Number(given), { signal });
    printEvidence(terminal, proof);
  },
});

/** The checkpoint in a file. Its signature is not checked: the file is the user's. @throws UsageError */
export async function readCheckpointFile(invocation: Invocation, file: string): Promise<LogCheckpoint> {
  const found = parseCheckpoint(await readTextInput(invocation, file));
  if (found === null)
    throw new UsageError(`${inputName(file)}: is not a checkpoint, as leasehold audit checkpoint prints it`);
  return found;
}

/** The origin without its generation: after a restore or an accepted roll-back the audit log continues under
 * another key. */
function vaultOf(origin: string): string {
  return origin.split('/', 2).join('/');
}

/** Null if the audit log extends the checkpoint; otherwise the reason, in one sentence. @throws LeaseholdError */
export async function contradiction(
  vault: Leasehold,
  kept: LogCheckpoint,
  signal: AbortSignal,
): Promise<string | null> {
  const { origin, size } = await vault.audit.readCheckpoint({ signal });
  if (vaultOf(origin) !== vaultOf(kept.origin))
    return `This is the audit log ${origin}, and the checkpoint is of another one: ${kept.origin}.`;
  let proof: ConsistencyProof;
  try {
    proof = await vault.audit.proveConsistency({ from: kept.size }, { signal });
  } catch (error) {
    if (!(error instanceof LeaseholdError) || error.code !== 'INVALID_REQUEST') throw error;
    return `The audit log has ${size} entries and the checkpoint has ${kept.size}: the audit log was truncated.`;
  }
  const [fromRoot, toRoot] = [proof.from_root, proof.to_root].map((root) => decodeHash(root) ?? '');
  const hashes = proof.proof.map((hash) => decodeHash(hash) ?? '');
  const [previous, current] = [
    { size: proof.from, root: fromRoot ?? '' },
    { size: proof.to, root: toRoot ?? '' },
  ];
  const isExtended =
    previous.size === kept.size && previous.root === kept.root && isConsistent(previous, current, hashes);
  return isExtended ? null : `The first ${kept.size} entries do not match the checkpoint: the audit log was replaced.`;
}

const acceptRollback = defineCommand({
  name: 'audit accept-rollback',
  about: [
    'If the audit log lacks an entry that the server has seen, or a signed checkpoint, the server is in recovery mode: it serves health checks, and reading, verifying and exporting the audit log. First try to restore the missing entries, from a file of the database or from a standby that was not behind. The changes that the lost entries record are lost too: for example, agents that were deregistered are registered again, and leases that were revoked are active again.',
  ],
  flags: CONFIRMATION_FLAGS,
  printsNoRecords: true,
  async run(invocation, flags) {
    const { terminal, signal } = invocation;
    const { audit } = invocation.connect();
    const { loss } = await audit.readRollback({ signal });
    if (loss === null) {
      printNotice(terminal, 'No loss of the audit log is known. Nothing was done.');
      return;
    }
    const describe = async (): Promise<string> =>
      `${loss} The changes that they record are lost too: revoked leases, for example, are active again.`;
    if (!(await confirmDestructive(invocation, flags, describe, 'Accept the loss?'))) return;
    await audit.acceptRollback({ signal });
    printNotice(terminal, 'Accepted the loss; the audit log records it. Next: leasehold audit verify.');
  },
});

const exportEntries = defineCommand({
  name: 'audit export',
  about: [
    'An auditor can verify the export without the server: run scripts/verify_audit.py with the key from leasehold audit key and the head record from --head.',
  ],
  flags: {
    out: text('FILE', 'write to this new file instead of standard output'),
    head: text('FILE', 'also write the head record, which reveals missing entries at the end'),
  },
  printsNoRecords: true,
  async run(invocation, flags) {
    const [out, headFile] = [newFile(invocation, flags.out), newFile(invocation, flags.head)];
    const entries = await exportLog(invocation, out, headFile);
    if (out !== null) printNotice(invocation.terminal, `Wrote ${entries} entries to ${out}.`);
  },
});

/** ORDER: before any request. If the file is created later, the write fails. @throws UsageError if the file exists */
function newFile({ terminal }: Invocation, name: string | null): string | null {
  const file = name === null ? null : resolve(terminal.workingDirectory, name);
  if (file !== null && existsSync(file)) throw alreadyExists(file);
  return file;
}

const NEWLINE = 10;

/**
 * Writes to standard output without the file `out`, which is created only when the export is complete. Resolves to the
 * number of entries. @throws UsageError, LeaseholdError
 */
async function exportLog(invocation: Invocation, out: string | null, headFile: string | null): Promise<number> {
  const { terminal, signal } = invocation;
  const vault = invocation.connect();
  const { meta } = await vault.audit.list({ limit: 1 }, { signal });
  const { head, bytes } = await vault.audit.export({ signal });
  using progress = startProgress(terminal, 'Exporting');
  let entries = 0;
  let last: number | undefined = NEWLINE;
  async function* count(chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      for (const byte of chunk) if (byte === NEWLINE) entries += 1;
      last = chunk.at(-1) ?? last;
      progress.show(entries, meta.total);
      yield chunk;
    }
  }
  const temporary = out === null ? null : temporaryPath(out);
  try {
    if (temporary !== null) writeNewFile(temporary, '');
    const target = temporary === null ? terminal.stdout : createWriteStream(temporary, { flags: 'r+', flush: true });
    await pipeline(bytes, count, target, { end: temporary !== null, signal });
    if (last !== NEWLINE) throw new LeaseholdError('UNREACHABLE', 'the export ended in the middle of an entry');
    if (out !== null && temporary !== null) publishNewFile(temporary, out);
    if (headFile !== null) writeNewPrivateFile(headFile, `leasehold-audit-head: ${head ?? ''}\n`);
  } catch (error) {
    // The reader closed the pipe.
    if (temporary === null && errnoSuffix(error) === ' (EPIPE)') return entries;
    if (signal.aborted) throw signal.reason;
    if (error instanceof LeaseholdError || error instanceof StartupError) throw error;
    throw (
      toUsageError(error, 'the file') ??
      new LeaseholdError('UNREACHABLE', 'the export was interrupted', { cause: error })
    );
  } finally {
    if (temporary !== null) rmSync(temporary, { force: true });
  }
  return entries;
}

function alreadyExists(what: string): UsageError {
  return new UsageError(`${what} already exists`, 'Choose another name. A file is never replaced.');
}

/** Null for an error that is not about the file. */
function toUsageError(error: unknown, file: string): UsageError | null {
  if (!(error instanceof Error && 'syscall' in error)) return null;
  const code = errnoSuffix(error);
  return code === ' (EEXIST)' ? alreadyExists(file) : new UsageError(`${file} cannot be written${code}`);
}

export const COMMANDS: readonly Command[] = [exportEntries, checkpoint, receipt, acceptRollback];
