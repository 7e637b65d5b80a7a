/**
 * Files of checkpoints, a JSON object on each line: `checkpoints.log` in the data directory, and the files of
 * `--checkpoint-file`, for example on a volume to which the server may only append. SOURCE: docs/formats.md,
 * "Checkpoints".
 */
import { checkpointSigner, type LogCheckpoint, openCheckpoint, parseCheckpoint } from '../crypto/checkpoint.ts';
import type { VaultKeys } from '../crypto/vault-keys.ts';
import { errnoSuffix, StartupError } from '../platform/errors.ts';
import { assertLineFile, LineFile, readEnd } from '../platform/line-file.ts';
import { dataDirPaths } from '../platform/paths.ts';
import { checkPrivateFile, writePrivateFile } from '../platform/private-files.ts';
import type { SignedCheckpoint } from '../vault/audit/checkpoints.ts';
import type { Configuration } from './configuration.ts';

/** The file in the data directory keeps this many lines, and at times up to twice as many. */
const MAX_LINES = 1000;
/**
 * Bytes read from the end, where the newest checkpoint is. They hold more than MAX_LINES lines; an operator's file may
 * be longer.
 */
const MAX_READ_BYTES = 8 * 1024 * 1024;

export type CheckpointKeys = Pick<VaultKeys, 'vaultId' | 'signing'>;

interface KeptCheckpoint extends LogCheckpoint {
  readonly generation: number;
}

/** Content of an existing file; `newest` is null if no line contains a checkpoint of this vault. */
interface Contents {
  readonly newest: KeptCheckpoint | null;
}

/** The checkpoint files; the file in the data directory is the first one. */
export function checkpointFilesOf({
  dataDir,
  checkpointFiles,
}: Pick<Configuration, 'dataDir' | 'checkpointFiles'>): CheckpointFile[] {
  const own = new CheckpointFile(dataDirPaths(dataDir).checkpointsFile, true);
  return [own, ...checkpointFiles.map((path) => new CheckpointFile(path, false))];
}

export class CheckpointFile {
  readonly path: string;
  /** Whether the file is in the data directory. That file is private, and is shortened from time to time. */
  readonly isOwn: boolean;
  readonly #file: LineFile;
  #lines = 0;

  constructor(path: string, isOwn: boolean) {
    this.path = path;
    this.isOwn = isOwn;
    this.#file = new LineFile(path);
  }

  /** Null for a missing file or an empty one. @throws StartupError */
  read(keys: CheckpointKeys): Contents | null {
    const lines = this.#readLines();
    this.#lines = lines.length;
    return lines.length === 0 ? null : { newest: findNewest(lines, keys) };
  }

  async append(checkpoint: SignedCheckpoint): Promise<void> {
    if (this.isOwn && this.#lines >= 2 * MAX_LINES) await this.#file.rewrite(() => this.#shorten());
    await this.#file.append(toLine(checkpoint));
    this.#lines += 1;
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  #shorten(): void {
    const kept = this.#readLines().slice(-MAX_LINES);
    writePrivateFile(this.path, kept.map((line) => `${line}\n`).join(''));
    this.#lines = kept.length;
  }

  /** The last lines of the file, without an incomplete line at its end, as a crash leaves it. */
  #readLines(): string[] {
    if (this.isOwn && !checkPrivateFile(this.path)) return [];
    assertLineFile(this.path);
    try {
      const { text, isWhole } = readEnd(this.path, MAX_READ_BYTES);
      return text.split('\n').slice(isWhole ? 0 : 1, -1);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
      throw new StartupError(`${this.path} cannot be read${errnoSuffix(error)}.`);
    }
  }
}

/** The largest checkpoint of the newest key; null if none of the lines was signed with one of the keys. */
function findNewest(lines: readonly string[], keys: CheckpointKeys): KeptCheckpoint | null {
  const notes = lines.flatMap((line) => {
    const note = noteOf(line);
    const checkpoint = note === null ? null : parseCheckpoint(note);
    return note === null || checkpoint === null ? [] : [{ note, ...checkpoint }];
  });
  // WHY sorted: verifying a signature takes 0.1 ms, and there are thousands of lines.
  notes.sort((a, b) => b.size - a.size);
  for (const { generation } of keys.signing.toReversed()) {
    const signer = checkpointSigner(keys, generation);
    for (const { note, origin } of notes) {
      const checkpoint = origin === signer.name ? openCheckpoint(note, signer) : null;
      if (checkpoint !== null) return { ...checkpoint, generation };
    }
  }
  return null;
}

function toLine({ origin, size, rootText, signedAt, note }: SignedCheckpoint): string {
  const fields = { time: new Date(signedAt).toISOString(), origin, size, root: rootText, note };
  return `${JSON.stringify(fields)}\n`;
}

function noteOf(line: string): string | null {
  try {
    const { note }: Record<string, unknown> = JSON.parse(line);
    return typeof note === 'string' ? note : null;
  } catch {
    return null;
  }
}
