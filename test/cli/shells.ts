/**
 * Real shells at a real terminal: types a line, completes it with the tab key, and shows it as a program receives it.
 */
import { execFile, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { COMMAND, COMPILED } from '../kit/command.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/processes.ts';
import { openPseudoTerminal } from '../kit/pseudo-terminal.ts';

export type ShellName = 'bash' | 'zsh' | 'fish';

const ZSH_SCRIPT = join(import.meta.dirname, '../../src/cli/completion/leasehold.zsh');
const TAB = '\t';
const START_OF_LINE = '\u0001';

const STARTS: Readonly<Record<ShellName, { readonly command: readonly string[]; readonly setup: string }>> = {
  bash: { command: ['bash', '--noprofile', '--norc', '-i'], setup: 'source <(leasehold completion bash)' },
  zsh: {
    command: ['zsh', '-f', '-i'],
    setup: 'autoload -U compinit; compinit -D -u; source <(leasehold completion zsh)',
  },
  fish: { command: ['fish', '--no-config', '-i'], setup: 'leasehold completion fish | source' },
};

/** Those of the machine; bash is everywhere. */
export const SHELLS_HERE = (Object.keys(STARTS) as ShellName[]).filter(
  (name) => name === 'bash' || spawnSync(name, ['--version']).status === 0,
);

export interface Bench {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  /** The file in which the program `said` records its arguments. */
  readonly result: string;
}

/** A directory with programs that replace installed ones: `leasehold`, and `said`, which records its arguments. */
export function makeBench(scope: Scope, environment: Readonly<Record<string, string>> = {}): Bench {
  const folder = temporaryDirectory(scope);
  const result = join(folder, 'result');
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const [program, ...flags] = COMMAND.with(-1, join(import.meta.dirname, 'patient.ts'));
  const scripts = {
    leasehold: `exec '${program}' ${flags.map((word) => `'${word}'`).join(' ')} "$@"`,
    said: `printf '%s\\n' "$@" > '${result}.new' && mv '${result}.new' '${result}'`,
    'only-here-program': ':',
  };
  for (const [name, text] of Object.entries(scripts)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const PATH = [bin, process.env['PATH'] ?? ''].join(delimiter);
  return { folder, result, environment: { PATH, HOME: folder, TERM: 'dumb', ...COMPILED, ...environment } };
}

export interface Shell {
  /** The arguments of the completed line, with an `X` typed after it. */
  completed(line: string): Promise<string[]>;
}

export async function openShell(scope: Scope, name: ShellName, { folder, environment, result }: Bench): Promise<Shell> {
  const { command, setup } = STARTS[name];
  const terminal = openPseudoTerminal(scope, command, { cwd: folder, environment, columns: 200 });
  const run = async (text: string): Promise<string[]> => {
    rmSync(result, { force: true });
    terminal.type(text);
    await until(
      () => existsSync(result),
      120_000,
      () => `${name} did not get that far: ${terminal.screen()}`,
    );
    return readFileSync(result, 'utf8').trimEnd().split('\n');
  };
  // WHY the first prompt: input that is typed before the shell reads may be lost, or be echoed and not read.
  await terminal.shows(/[$%#>] ?/);
  await run(`${setup}; said ready\r`);
  return { completed: (line) => run(`${line}${TAB}X${START_OF_LINE}said \r`) };
}

/**
 * The words that zsh's script would add. Runs it in bash with replacements for the zsh functions that it uses, because
 * zsh may not be installed.
 */
export async function zshInBash(words: readonly string[], { folder, environment }: Bench): Promise<string[]> {
  const standIns = `
    compdef() { :; }
    compadd() { local space=' '; while [[ $1 != -- ]]; do if [[ $1 == -S ]]; then space=$2; fi; shift; done; printf '%s%s\\n' "$2" "$space"; }
    compset() { PREFIX=\${PREFIX#*=}; }
    _files() { if [[ $1 == -/ ]]; then compgen -d -- "$PREFIX"; else compgen -f -- "$PREFIX"; fi; }
    _command_names() { compgen -c -- "$PREFIX"; }
    source '${ZSH_SCRIPT}'
    words=(leasehold "$@") CURRENT=$(($# + 1)) PREFIX=\${words[$#]}
    _leasehold`;
  const options = { cwd: folder, env: { ...environment }, encoding: 'utf8' } as const;
  const { stdout } = await promisify(execFile)('bash', ['-c', standIns, 'bash', ...words], options);
  return stdout.split('\n').filter(Boolean);
}
