/** Runs a scan: findings, moves into the vault, report. The command provides the terminal as ports. */
import type { Leasehold } from '../../client/leasehold.ts';
import type { CredentialPath } from '../../core/path.ts';
import { EXIT } from '../errors.ts';
import type { ReportPorts } from '../import/report.ts';
import { type Printable, toCell } from '../output/cells.ts';
import { findInEnvFile } from './env-file.ts';
import { type Move, moveFile, pathFor } from './move-to-vault.ts';
import { type Finding, findInText, isMovable } from './text.ts';
import { type ScannedFile, type Skipped, type TreeOptions, walk } from './tree.ts';

interface Scanned {
  readonly findings: readonly Finding[];
  /** Env files with movable findings, as they were read, by `Finding.file`. */
  readonly envFiles: ReadonlyMap<string, Pick<ScannedFile, 'path' | 'bytes'>>;
  readonly files: number;
  readonly skipped: Skipped;
}

/** @throws UsageError, the signal's reason */
export async function scan(options: TreeOptions, progress: (done: number) => void): Promise<Scanned> {
  const skipped: Skipped = { large: 0, binary: 0, unreadable: [], notFollowed: [] };
  const findings: Finding[] = [];
  const envFiles = new Map<string, Pick<ScannedFile, 'path' | 'bytes'>>();
  let files = 0;
  for await (const { file, isEnv, path, bytes } of walk(options, skipped)) {
    const found = isEnv ? findInEnvFile(bytes, file) : findInText(bytes.toString('utf8'), file);
    if (isEnv && found.some(isMovable)) envFiles.set(file, { path, bytes });
    for (const each of found) findings.push(each);
    progress(++files);
  }
  return { findings, envFiles, files, skipped };
}

export interface MoveOptions {
  readonly prefix: readonly string[];
  readonly asks: boolean;
  readonly isDry: boolean;
  readonly signal: AbortSignal;
  connect(): Pick<Leasehold, 'credentials'>;
}

/** The outcome of each finding; those without one were not moved. */
type Outcomes = ReadonlyMap<Finding, { readonly path: string; readonly outcome: string }>;
const MOVED = 'moved';

/** Confirms each move, then moves file by file. @throws UsageError, LeaseholdError */
export async function moveFindings(
  { findings, envFiles }: Scanned,
  ports: ReportPorts,
  options: MoveOptions,
): Promise<Outcomes> {
  const outcomes = new Map<Finding, { path: string; outcome: string }>();
  const wanted: Move[] = [];
  for (const finding of findings.filter(isMovable)) {
    const named = pathFor(options.prefix, finding);
    const location = `${finding.name} (${toCell(finding.file)}:${finding.line})`;
    if ('rejected' in named) outcomes.set(finding, { path: '', outcome: named.rejected });
    else if (options.isDry) outcomes.set(finding, { path: named.path, outcome: 'would be moved' });
    else if (!options.asks || (await ports.confirm(`Move ${location} to ${named.path}?`))) {
      wanted.push({ finding, path: named.path as CredentialPath });
    }
  }
  if (wanted.length === 0) return outcomes;
  const vault = options.connect();
  for (const [file, moves] of Map.groupBy(wanted, ({ finding }) => finding.file)) {
    // Checked between files: a file that was started is completed.
    if (options.signal.aborted) break;
    const read = envFiles.get(file);
    const moved = read === undefined ? [] : await moveFile(vault, moves, read);
    for (const { move, failure } of moved) outcomes.set(move.finding, { path: move.path, outcome: failure ?? MOVED });
  }
  return outcomes;
}

/** One record per finding. */
function toRecords(findings: readonly Finding[], outcomes: Outcomes | null): Printable[] {
  return findings.map((finding) => {
    const { file, line, rule, name, hint } = finding;
    const outcome = outcomes?.get(finding);
    const moved = outcomes === null ? {} : { path: outcome?.path ?? null, outcome: outcome?.outcome ?? 'left' };
    return { file, line, rule, name, hint, ...moved };
  });
}

/** Resolves to the exit code. */
export async function report(scanned: Scanned, outcomes: Outcomes | null, ports: ReportPorts): Promise<number> {
  const { findings, files, skipped } = scanned;
  const columns = ['file', 'line', 'rule', 'name', 'hint', ...(outcomes === null ? [] : ['path', 'outcome'])];
  await ports.print(toRecords(findings, outcomes), columns);
  const isMoved = (finding: Finding): boolean => outcomes?.get(finding)?.outcome === MOVED;
  const moved = findings.filter(isMoved).length;
  const found = `${findings.length} found in ${new Set(findings.map(({ file }) => file)).size} of ${files} files`;
  ports.say(outcomes === null ? `${found}.` : `${found}; ${moved} moved.`);
  if (skipped.large + skipped.binary > 0) {
    ports.say(`  Not scanned: ${skipped.large} larger than 1 MiB, ${skipped.binary} binary.`);
  }
  for (const file of skipped.notFollowed) ports.say(`  Ignore file not followed, so more was scanned: ${toCell(file)}`);
  for (const file of skipped.unreadable) ports.say(`  Could not be read: ${toCell(file)}`);
  if (moved > 0) {
    ports.say('  Run a program with the values: leasehold run --env-file FILE -- COMMAND');
    ports.say('  Copies that were committed, sent or backed up still contain the values: rotate them.');
  }
  const left = findings.filter((finding) => !isMoved(finding));
  if (outcomes === null && left.some(isMovable)) {
    ports.say('  Move the secrets of env files into the vault: leasehold scan --move --prefix PATH');
  }
  if (left.some((finding) => !isMovable(finding))) {
    ports.say(
      '  In other files, store the value with leasehold put PATH, let the program read a variable, and start it with',
    );
    ports.say(
      '  leasehold run --env NAME=PATH. Then rotate the value. A line that contains leasehold:allow is skipped.',
    );
  }
  return left.length === 0 && skipped.unreadable.length === 0 ? EXIT.OK : EXIT.NEGATIVE;
}
