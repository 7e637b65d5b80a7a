/**
 * Runs a program with leased values. All leases are acquired before the program starts. At the end, files are removed
 * and leases revoked in every case. Signals are handled from the first request to the last.
 */

import { ReadStream, WriteStream } from 'node:tty';
import { createMasking, type Masking } from '../masking/masking.ts';
import { UsageError } from '../platform/errors.ts';
import type { Secret } from '../vault/credentials/credential.ts';
import { type ParsedBindings, type UseBinding, withoutNames } from './bindings.ts';
import { checkExecutable, type ExitStatus, isInForeground, type Program, Signals } from './child-process.ts';
import { inheritEnvironment, proxyExceptions, type Variables } from './environment.ts';
import { acquireLeases, releaseLeases } from './leases.ts';
import { runOnPipes, type Streams } from './pipes.ts';
import { loadPtyMaker, runOnPty, type Terminals } from './pty.ts';
import { fillTemplates } from './references.ts';
import { acquireUses, keepRenewed, type UseLeaseClient, useVariables } from './use-variables.ts';
import { makePrivateFiles, type PrivateFiles } from './value-files.ts';

/** The limit includes the name, `=` and the NUL at the end. SOURCE: execve(2), MAX_ARG_STRLEN. */
const MAX_VARIABLE_BYTES = 128 * 1024;
const NO_PTY =
  'without the optional package @lydell/node-pty the program receives pipes and no terminal; with --no-masking it receives this one';

export interface RunRequest extends ParsedBindings {
  readonly uses: readonly UseBinding[];
  readonly command: readonly [file: string, ...words: string[]];
  /** Names of the parent's variables that are always passed on. */
  readonly keep: readonly string[];
  /** Whether variables contain paths of files with the values, instead of the values. */
  readonly hasFiles: boolean;
  readonly isMasked: boolean;
  /** Null for the longest lease that the policies allow. Use leases are then renewed while the program runs. */
  readonly ttlSeconds: number | null;
}

export interface HostEnvironment {
  readonly streams: Streams;
  readonly environment: Variables;
  /** The program's umask; null to inherit the umask of this process. */
  readonly umask: number | null;
  /** Signals that were ignored when this process started, as with `nohup`. */
  readonly ignored: readonly NodeJS.Signals[];
  say(line: string): void;
}

/** Resolves to the program's exit status. @throws UsageError, LeaseAcquisitionError */
export async function run(request: RunRequest, client: UseLeaseClient, host: HostEnvironment): Promise<ExitStatus> {
  const inherited = inheritEnvironment(host.environment, request.keep);
  const [file, ...words] = request.command;
  const ownPath = request.literals.find(({ name }) => name === 'PATH')?.value.reveal();
  const fault = checkExecutable(file, ownPath ?? inherited.variables['PATH']);
  if (fault !== null) {
    host.say(fault.message);
    return { code: fault.code };
  }
  reportWithheld(inherited.withheld, host);
  const interruption = new AbortController();
  let interruptedBy: NodeJS.Signals | null = null;
  const interrupt = (signal: NodeJS.Signals): void => {
    interruptedBy ??= signal;
    interruption.abort();
  };
  const signals = new Signals(interrupt, host.ignored);
  const leaseIds: string[] = [];
  const renewal = new AbortController();
  let renewing: Promise<void> = Promise.resolve();
  let files: PrivateFiles | null = null;
  let cleaning: Promise<void> | null = null;
  const cleanUp = async (): Promise<void> => {
    files?.remove();
    renewal.abort();
    await renewing;
    const failure = await releaseLeases(client, leaseIds);
    if (failure !== null) host.say(failure);
  };
  // WHY not after the output: a slow reader would delay it.
  const atExit = (): void => {
    cleaning ??= cleanUp();
  };
  try {
    const options = { ttlSeconds: request.ttlSeconds, signal: interruption.signal };
    // ORDER: uses first, because the variables that they override need neither a lease nor a value.
    const uses = await acquireUses(client, request.uses, options);
    for (const { lease_id } of uses.values()) leaseIds.push(lease_id);
    const used = useVariables(request.uses, uses, client.baseUrl);
    for (const name of request.explicit) used.delete(name);
    const { wanted, templates, literals } = withoutNames(request, used);
    const acquired = await acquireLeases(client, wanted, options);
    leaseIds.push(...acquired.leaseIds);
    if (request.hasFiles) files = makePrivateFiles(host.environment['XDG_RUNTIME_DIR']);
    const values = deliver(fillTemplates(templates, acquired.values), files);
    const tokens = [...uses].map(([path, { token }]) => [path, token] as const);
    const masking = request.isMasked ? mask([...acquired.values, ...tokens], host) : null;
    const given: Record<string, string> = Object.create(null);
    for (const { name, value } of literals) given[name] = value.reveal();
    const environment = Object.assign(Object.create(null), inherited.variables, given, deliver(used, null), values);
    const baseUrls = request.uses.map(({ path }) => client.baseUrl(path));
    Object.assign(environment, proxyExceptions(environment, baseUrls));
    if (request.ttlSeconds === null) renewing = keepRenewed(client, uses, renewal.signal, host.say);
    const { umask, ignored } = host;
    const program = { file, words, environment, masking, umask, ignored };
    const begin = await selectRunner(program, host, signals);
    // ORDER: nothing is awaited between this check and the program's start, so that no signal is lost.
    if (interruptedBy !== null) return { signal: interruptedBy };
    const ending = await begin(atExit);
    if (ending.remark !== undefined) host.say(ending.remark);
    return ending;
  } catch (error) {
    if (interruptedBy !== null && interruption.signal.reason === error) return { signal: interruptedBy };
    throw error;
  } finally {
    atExit();
    await cleaning;
    signals.release();
  }
}

/** Returns the contents of the variables. @throws UsageError */
function deliver(values: ReadonlyMap<string, Secret>, files: PrivateFiles | null) {
  const variables: Record<string, string> = Object.create(null);
  for (const [name, value] of values) {
    if (files !== null) {
      variables[name] = files.write(name, value);
      continue;
    }
    const text = value.reveal();
    const fail = (what: string): UsageError =>
      new UsageError(`${name}: the value ${what}`, '--files delivers it as a file.');
    if (text.includes('\0')) throw fail('contains a NUL, which no environment can hold');
    const bytes = Buffer.byteLength(text) + name.length + 2;
    if (bytes > MAX_VARIABLE_BYTES) throw fail('is longer than a variable can be: 128 KiB with its name');
    variables[name] = text;
  }
  return variables;
}

function mask(values: Iterable<readonly [name: string, value: Secret]>, { say }: HostEnvironment): Masking | null {
  const masking = createMasking(values);
  if (masking.tooShort.length > 0) say(`too short to be masked: ${masking.tooShort.join(', ')}`);
  return masking.isNeeded ? masking : null;
}

/**
 * Selects a pseudo-terminal if output is masked and all three streams are terminals; otherwise pipes, or the streams
 * themselves.
 */
async function selectRunner(
  program: Program,
  { streams, say }: HostEnvironment,
  signals: Signals,
): Promise<(atExit: () => void) => Promise<ExitStatus>> {
  const { masking } = program;
  const terminals = terminalsOf(streams);
  if (masking !== null && terminals !== null && isInForeground()) {
    const maker = await loadPtyMaker();
    if (maker !== null) return (atExit) => runOnPty(maker, { ...program, masking }, terminals, signals, atExit);
    say(NO_PTY);
  }
  return (atExit) => runOnPipes(program, streams, signals, atExit);
}

function terminalsOf({ stdin, stdout, stderr }: Streams): Terminals | null {
  const areTerminals = stdin instanceof ReadStream && stdout instanceof WriteStream && stderr instanceof WriteStream;
  return areTerminals ? { stdin, stdout } : null;
}

function reportWithheld(names: readonly string[], { say }: HostEnvironment): void {
  if (names.length === 0) return;
  const shown = names.map((name) => name.replaceAll(/[^\x21-\x7e]/g, '?')).join(', ');
  say(`${names.length} ${names.length === 1 ? 'variable' : 'variables'} not passed on (--keep NAME does): ${shown}`);
}
