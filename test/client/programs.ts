/** Runs the programs of the documents and examples unchanged, against a server with their data. */
import { execFile } from 'node:child_process';
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../conventions/source.ts';
import { COMPILED } from '../kit/command.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { startTestService, type TestService } from '../kit/service.ts';

export const VALUE = 'correct horse';
export const AGENT = 'deploy-bot';

interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Shop {
  readonly service: TestService;
  /** The working directory of programs, with the agent's key and the administrator's token. */
  readonly directory: string;
  /** Runs the program in the directory, with PATH, the given variables and the compile cache only. */
  run(program: string, words: readonly string[], environment?: Readonly<Record<string, string>>): Promise<Ran>;
}

/** Node's flags in the header of an example, for runs in the checkout. */
export function flagsOfExample(name: string): string[] {
  const [, flags] =
    /^ \* {3}node_modules\/\.bin\/node (-.*) examples\//m.exec(readFileSync(example(name), 'utf8')) ?? [];
  if (flags === undefined) throw new Error(`${name} does not say how it is run in the checkout`);
  return flags.split(' ');
}

/** `prod/db/password`, `prod/signing/key`, and an agent that may retrieve and list below `prod/db/`. */
export async function openShop(scope: Scope): Promise<Shop> {
  const service = await startTestService(scope);
  const { admin, dataDir } = service;
  const directory = temporaryDirectory(scope);
  await admin.post('/api/v1/credentials', { path: 'prod/db/password', type: 'password', value: VALUE });
  await admin.post('/api/v1/credentials', { path: 'prod/signing/key', value: 'of nobody here' });
  await admin.post('/api/v1/agents', { name: AGENT });
  const grant = { name: 'deploys', principal: `agent:${AGENT}`, resources: ['prod/db/*'] };
  await admin.post('/api/v1/policies', { ...grant, actions: ['retrieve', 'list'], max_ttl: 900 });
  copyFileSync(join(dataDir, 'agents', AGENT, 'private_key.pem'), join(directory, `${AGENT}.pem`));
  copyFileSync(join(dataDir, 'daemon.token'), join(directory, 'daemon.token'));
  return {
    service,
    directory,
    run: (program, words, environment = {}) =>
      new Promise((resolve) => {
        const base = { PATH: process.env['PATH'] ?? '', LEASEHOLD_ADDR: service.address, HOME: directory, ...COMPILED };
        const options = { cwd: directory, env: { ...base, ...environment }, timeout: HANGS_AFTER_MS };
        const child = execFile(program, words, options, (_error, stdout, stderr) =>
          resolve({ code: child.exitCode, stdout, stderr }),
        );
      }),
  };
}

/** Only a hang reaches it. */
const HANGS_AFTER_MS = 120_000;

export const example = (name: string): string => join(ROOT, 'examples', name);
