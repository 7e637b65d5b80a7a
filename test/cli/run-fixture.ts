/** The fixture of the tests of `leasehold run`: a server with values, an agent's token, and a command that uses it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMMAND, COMPILED, type Home, newHome, type RunOptions } from '../kit/command.ts';
import type { Scope } from '../kit/directory.ts';
import { openPseudoTerminal, type PseudoTerminal } from '../kit/pseudo-terminal.ts';
import { startTestService, type TestService } from '../kit/service.ts';

export const VALUES = {
  'prod/a': 'hunter2-correct-horse',
  'prod/b': 'b@ttery/st+ple & "quotes"',
  'prod/pem': `-----BEGIN PRIVATE KEY-----\n${'MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n'.repeat(2)}-----END PRIVATE KEY-----\n`,
  'prod/pin': '123',
  'other/c': 'not for the agent',
} as const;

export interface Scene {
  readonly service: TestService;
  readonly home: Home;
  /** The environment of the command. */
  readonly environment: Readonly<Record<string, string>>;
  /** The words of a shell for `leasehold run …`. */
  run(...words: readonly string[]): readonly string[];
  /** How many leases there are that have not ended. */
  countActive(): Promise<number>;
}

export async function openScene(scope: Scope): Promise<Scene> {
  const service = await startTestService(scope);
  for (const [path, value] of Object.entries(VALUES)) await service.admin.post('/api/v1/credentials', { path, value });
  const { token } = await service.agent('runner', { 'prod/*': ['retrieve'] });
  const own = { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: token };
  const home = newHome(scope, own);
  return {
    service,
    home,
    environment: { PATH: process.env['PATH'] ?? '', HOME: home.path, ...COMPILED, ...own },
    run: (...words) => [...COMMAND, 'run', ...words],
    async countActive() {
      return (await service.admin.get('/api/v1/leases?status=active')).body.data.length;
    },
  };
}

/** Runs a shell script as the program, in this process. Its standard input is that of the tests. */
export function runScript(
  home: Home,
  flags: readonly string[],
  script: string,
  more: RunOptions = {},
): ReturnType<Home['leasehold']> {
  return home.leasehold(['run', ...flags, '--', 'sh', '-c', script], { ...more, isInProcess: true });
}

/** The same without masking; `seen` is the standard output. */
export async function seeScript(home: Home, flags: readonly string[], script: string, more: RunOptions = {}) {
  const redirected = `exec >"$HOME/seen"; ${script}`;
  const { code, stderr } = await runScript(home, ['--no-masking', ...flags], redirected, more);
  return { code, stderr, seen: readFileSync(join(home.path, 'seen'), 'utf8') };
}

export interface Screen extends PseudoTerminal {
  sees(text: string): Promise<void>;
}

/** Runs the words in a pseudo-terminal. */
export function openTerminal(
  scope: Scope,
  { home, environment }: Scene,
  words: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Screen {
  const screen = openPseudoTerminal(scope, words, {
    cwd: home.path,
    environment: { ...environment, TERM: 'xterm', ...more },
  });
  return { ...screen, sees: (text) => screen.shows(new RegExp(RegExp.escape(text))) };
}
