/** A scan from the first file to its report, with what it needs of the outside as ports: the command fills them in. */
import type { Leasehold } from '../../client/leasehold.ts';
import type { CredentialPath } from '../../core/path.ts';
import { EXIT } from '../errors.ts';
import { type Printable, toCell } from '../output/cells.ts';
import { findInEnvFile } from './env-file.ts';
import { type Move, moveFile, pathFor } from './move-to-vault.ts';
import { type Finding, findInText, isMovable } from './text.ts';
import { type ScannedFile, type Skipped, type TreeOptions, walk } from './tree.ts';

export interface Ports {
  /** For people. */
  say(line: string): void;
  /** @throws UsageError where nobody is there */
  confirm(question: string): Promise<boolean>;
  print(records: readonly Printable[], columns: readonly string[]): Promise<void>;
}

interface Scanned {
  readonly findings: readonly Finding[];
  /** Env files with findings, as they were read, by the names of the findings. */
  readonly envFiles: ReadonlyMap<string, Pick<ScannedFile, 'path' | 'bytes'>>;
  readonly files: number;
  readonly passed: Skipped;
}

/** @throws UsageError, the signal's reason */
export async function scan(options: TreeOptions, progress: (done: number) => void): Promise<Scanned> {
  const passed: Skipped = { large: 0, binary: 0, unreadable: [], notFollowed: [] };
  const findings: Finding[] = [];
  const envFiles = new Map<string, Pick<ScannedFile, 'path' | 'bytes'>>();
  let files = 0;
  for await (const { file, isEnv, path, bytes } of walk(options, passed)) {
    const found = isEnv ? findInEnvFile(bytes, file) : findInText(bytes.toString('utf8'), file);
    if (isEnv && found.some(isMovable)) envFiles.set(file, { path, bytes });
    for (const each of found) findings.push(each);
    progress(++files);
  }
  return { findings, envFiles, files, passed };
}

export interface MoveOptions {
  readonly prefix: readonly string[];
  readonly asks: boolean;
  readonly isDry: boolean;
  readonly signal: AbortSignal;
  connect(): Pick<Leasehold, 'credentials'>;
}

/** What became of a finding; those that are not in it were left where they are. */
type Ends = ReadonlyMap<Finding, { readonly path: string; readonly outcome: string }>;
const MOVED = 'moved';

/** Asks for each, then moves file by file. @throws UsageError, LeaseholdError */
export async function moveFindings({ findings, envFiles }: Scanned, ports: Ports, options: MoveOptions): Promise<Ends> {
  const ends = new Map<Finding, { path: string; outcome: string }>();
  const wanted: Move[] = [];
  for (const finding of findings.filter(isMovable)) {
    const named = pathFor(options.prefix, finding);
    const place = `${finding.name} (${toCell(finding.file)}:${finding.line})`;
    if ('rejected' in named) ends.set(finding, { path: '', outcome: named.rejected });
    else if (options.isDry) ends.set(finding, { path: named.path, outcome: 'would be moved' });
    else if (!options.asks || (await ports.confirm(`Move ${place} to ${named.path}?`))) {
      wanted.push({ finding, path: named.path as CredentialPath });
    }
  }
  if (wanted.length === 0) return ends;
  const vault = options.connect();
  for (const [file, moves] of Map.groupBy(wanted, ({ finding }) => finding.file)) {
    // Between files: one that was begun is brought to its end.
    const isBroken = options.signal.aborted;
    const read = envFiles.get(file);
    const moved = isBroken || read === undefined ? [] : await moveFile(vault, moves, read);
    for (const { move, failure } of moved) ends.set(move.finding, { path: move.path, outcome: failure ?? MOVED });
    if (isBroken) for (const { finding, path } of moves) ends.set(finding, { path, outcome: 'broken off before it' });
  }
  return ends;
}

/** A record a finding. */
function toRecords(findings: readonly Finding[], ends: Ends | null): Printable[] {
  return findings.map((finding) => {
    const { file, line, rule, name, hint } = finding;
    const end = ends?.get(finding);
    const moved = ends === null ? {} : { path: end?.path ?? null, outcome: end?.outcome ?? 'left' };
    return { file, line, rule, name, hint, ...moved };
  });
}

/** Resolves to the exit code. */
export async function report(scanned: Scanned, ends: Ends | null, ports: Ports): Promise<number> {
  const { findings, files, passed } = scanned;
  const columns = ['file', 'line', 'rule', 'name', 'hint', ...(ends === null ? [] : ['path', 'outcome'])];
  await ports.print(toRecords(findings, ends), columns);
  const isMoved = (finding: Finding): boolean => ends?.get(finding)?.outcome === MOVED;
  const moved = findings.filter(isMoved).length;
  const found = `${findings.length} found in ${new Set(findings.map(({ file }) => file)).size} of ${files} files`;
  ports.say(ends === null ? `${found}.` : `${found}; ${moved} moved.`);
  const skipped = [
    ...(passed.large > 0 ? [`${passed.large} larger than 1 MiB`] : []),
    ...(passed.binary > 0 ? [`${passed.binary} binary`] : []),
  ];
  if (skipped.length > 0) ports.say(`  Not looked at: ${skipped.join(', ')}.`);
  for (const file of passed.notFollowed) ports.say(`  Not followed, so more was looked at: ${toCell(file)}`);
  for (const file of passed.unreadable) ports.say(`  Could not be read: ${toCell(file)}`);
  if (moved > 0) {
    ports.say('  leasehold run --env-file FILE -- COMMAND gives the values to a program.');
    ports.say('  What was ever committed, sent or backed up still holds them: exchange those.');
  }
  const left = findings.filter((finding) => !isMoved(finding));
  if (ends === null && left.some(isMovable)) {
    ports.say('  leasehold scan --move --prefix PATH moves those of env files into the vault.');
  }
  if (left.some((finding) => !isMovable(finding))) {
    ports.say('  By hand, in other files: leasehold put PATH, read it in the program from a variable, start that with');
    ports.say(`  leasehold run --env NAME=PATH, and exchange the value. A line with leasehold:allow is passed over.`);
  }
  return left.length === 0 && passed.unreadable.length === 0 ? EXIT.OK : EXIT.NEGATIVE;
}
