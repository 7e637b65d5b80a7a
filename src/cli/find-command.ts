/** Finds a command in the command table by the words typed. */

import { nearest } from '../core/nearest.ts';
import { UsageError } from '../platform/errors.ts';
import type { Command } from './command.ts';
import { nounOverview } from './help.ts';

interface Found {
  readonly command: Command;
  /** The words after its name. */
  readonly words: readonly string[];
}

/** Names that other tools use, and ours in order of preference. */
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

/** Matches two words or one; a noun alone returns its overview. @throws UsageError that suggests a command */
export function find(words: readonly string[], commands: readonly Command[]): Found | string {
  const [first = '', second = ''] = words;
  const pair = commands.find(({ name }) => name === `${first} ${second}`);
  if (pair !== undefined) return { command: pair, words: words.slice(2) };
  const single = commands.find(({ name }) => name === first);
  if (single !== undefined) return { command: single, words: words.slice(1) };
  const verbs = commands.filter(({ name }) => name.startsWith(`${first} `));
  if (verbs.length === 0) {
    const known = [...new Set(commands.map(({ name }) => name.split(' ')[0] ?? ''))];
    throw new UsageError(`unknown command${suggestion(first, known)}`, 'To list all commands: leasehold --help');
  }
  if (second === '' || second.startsWith('-')) return nounOverview(first, verbs);
  const known = verbs.map(({ name }) => name.slice(first.length + 1));
  throw new UsageError(
    `unknown ${first} command${suggestion(second, known)}`,
    `Usage: leasehold ${first} ${known.join('|')}`,
  );
}

function suggestion(word: string, known: readonly string[]): string {
  const aliases = Object.hasOwn(ALIASES, word) ? ALIASES[word] : undefined;
  const near = aliases?.find((name) => known.includes(name)) ?? nearest(word, known);
  return near === null ? '' : `; did you mean \`${near}\`?`;
}
