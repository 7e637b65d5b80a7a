/** The row of the table that was typed. */

import { nearest } from '../core/nearest.ts';
import { UsageError } from '../platform/errors.ts';
import type { Command } from './command.ts';
import { nounOverview } from './help.ts';

interface Found {
  readonly command: Command;
  /** What stands behind its name. */
  readonly words: readonly string[];
}

/** What other tools call it. Where several of ours are named, the first that there is is meant. */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  add: ['add', 'put'],
  create: ['add', 'put'],
  new: ['add', 'put'],
  register: ['add'],
  set: ['put'],
  write: ['put'],
  store: ['put'],
  update: ['put'],
  edit: ['put'],
  get: ['show', 'get'],
  read: ['show', 'get'],
  view: ['show', 'get'],
  describe: ['show', 'get'],
  show: ['show', 'get'],
  ls: ['list'],
  kv: ['list'],
  secret: ['list'],
  secrets: ['list'],
  credential: ['list'],
  credentials: ['list'],
  rm: ['delete'],
  del: ['delete'],
  remove: ['delete'],
  unset: ['delete'],
  destroy: ['delete'],
  deregister: ['delete'],
  end: ['revoke'],
  versions: ['history'],
  log: ['list', 'audit'],
  logs: ['list', 'audit'],
  follow: ['tail'],
  exec: ['run'],
  start: ['server'],
  serve: ['server'],
  signin: ['login'],
  auth: ['login'],
  signout: ['logout'],
  me: ['whoami'],
  agents: ['agent'],
  user: ['agent'],
  policies: ['policy'],
  leases: ['lease'],
};

/** By two words or by one; a noun alone gives its overview. @throws UsageError that names the command that may be meant */
export function find(words: readonly string[], commands: readonly Command[]): Found | string {
  const [first = '', second = ''] = words;
  const pair = commands.find(({ name }) => name === `${first} ${second}`);
  if (pair !== undefined) return { command: pair, words: words.slice(2) };
  const single = commands.find(({ name }) => name === first);
  if (single !== undefined) return { command: single, words: words.slice(1) };
  const verbs = commands.filter(({ name }) => name.startsWith(`${first} `));
  if (verbs.length === 0) {
    const known = [...new Set(commands.map(({ name }) => name.split(' ')[0] ?? ''))];
    throw new UsageError(`there is no such command${meant(first, known)}`, 'leasehold --help lists them all.');
  }
  if (second === '' || second.startsWith('-')) return nounOverview(first, verbs);
  const known = verbs.map(({ name }) => name.slice(first.length + 1));
  throw new UsageError(
    `${first} has no such verb${meant(second, known)}`,
    `leasehold ${first} ${known.join('|')}; leasehold ${first} --help tells more.`,
  );
}

function meant(word: string, known: readonly string[]): string {
  const elsewhere = Object.hasOwn(ALIASES, word) ? ALIASES[word] : undefined;
  const near = elsewhere?.find((name) => known.includes(name)) ?? nearest(word, known);
  return near === null ? '' : `; did you mean \`${near}\`?`;
}
