/** The command that would grant what was denied, and no more: this agent, this action, this path. */
import { quoteWord } from '../output/variables.ts';
import type { AccessQuery } from './question.ts';

const TTL_SECONDS = 300;

/** Words of the command line. `taken`: names that policies have, because `put` would replace one of those. */
export function grantCommand({ agent, action, path }: AccessQuery, taken: ReadonlySet<string>): string[] {
  const stem = `${agent}-${action}`;
  let name = stem;
  for (let number = 2; taken.has(name); number++) name = `${stem}-${number}`;
  return [
    ...['leasehold', 'policy', 'put', name],
    ...option('--principal', `agent:${agent}`),
    ...option('--resource', path),
    ...option('--action', action),
    ...option('--max-ttl', String(TTL_SECONDS)),
  ];
}

/** A path may begin with a dash, and would be taken for a flag. */
function option(flag: string, value: string): string[] {
  return value.startsWith('-') ? [`${flag}=${value}`] : [flag, value];
}

/** As any shell takes it. */
export function toCommandLine(words: readonly string[]): string {
  return words.map(quoteWord).join(' ');
}
