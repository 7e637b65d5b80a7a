/**
 * Runs the shell blocks of a page in order, in one shell with an empty home, and compares their output with the page.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { ROOT } from '../conventions/source.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { findPort } from '../kit/port.ts';
import { childrenOf, signal } from '../kit/processes.ts';
import { type Block, readBlocks } from './markdown.ts';
import { Shell } from './shell.ts';

/** What bash says of programs in the background. */
const JOB_CONTROL = /^\[\d+\].*\n?/gm;

export interface Step {
  readonly heading: string;
  readonly commands: string;
  readonly output: string;
}

/** Each shell block with the output block behind it; without one it prints nothing. */
function toSteps(blocks: readonly Block[]): Step[] {
  return blocks.flatMap(({ heading, language, text: commands }, index) => {
    const next = blocks[index + 1];
    const isShown = next?.heading === heading && ['json', 'text'].includes(next.language);
    return language === 'sh' ? [{ heading, commands, output: isShown ? next.text : '' }] : [];
  });
}

export const readSteps = (name: string): Step[] => toSteps(readBlocks(readFileSync(join(ROOT, name), 'utf8')));

/** The process groups of its programs, for `kill`. */
const groupsIn = (shell: Shell): number[] => childrenOf(shell.pid).map((pid) => -pid);

/** A shell in an empty home. The service that it starts listens at `address`. */
export async function openPage(t: TestContext, variables: Readonly<Record<string, string>> = {}) {
  let shell: Shell | null = null;
  // ORDER: before the shell ends, because its programs in the background would stay.
  t.after(() => shell !== null && signal(groupsIn(shell), 'SIGKILL'));
  const directory = temporaryDirectory(t);
  const home = temporaryDirectory(t);
  const address = `127.0.0.1:${await findPort()}`;
  const { PATH = '' } = process.env;
  const place = {
    cwd: ROOT,
    // npm's update notifier would call the registry.
    env: {
      PATH,
      HOME: home,
      LEASEHOLD_LISTEN: address,
      NO_PROXY: '*',
      npm_config_update_notifier: 'false',
      ...variables,
    },
  };
  /** The output as on a machine with the default address and home. */
  const tidy = (printed: string): string =>
    printed
      .replaceAll(home, '~')
      .replaceAll(ROOT, '~/leasehold')
      .replaceAll(address, '127.0.0.1:7700')
      .replaceAll(address.replace('127.0.0.1', 'localhost'), 'localhost:7700')
      .replaceAll(JOB_CONTROL, '');
  shell = new Shell(t, directory, place);
  return { home, place, shell, tidy };
}
