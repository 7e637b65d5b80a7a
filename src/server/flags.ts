/** The command-line flags of the service and its tools: strict, and rejected if npm took one of them. */
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { UsageError } from '../platform/errors.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** `program`: the command line of the program, for messages. @throws UsageError */
export function parseFlags<T extends ParseArgsOptionsConfig>(args: readonly string[], options: T, program: string) {
  const values = parseStrictly(args, options, program);
  const empty = Object.entries(values).find(([, value]) => value === '');
  if (empty !== undefined) throw new UsageError(`--${empty[0]} needs a value.`);
  return values;
}

function parseStrictly<T extends ParseArgsOptionsConfig>(args: readonly string[], options: T, program: string) {
  try {
    return parseArgs({ args: [...args], options, strict: true }).values;
  } catch (error) {
    // The first sentence names the flag; the rest may repeat values.
    const [first = ''] = (error instanceof Error ? error.message : '').split(/\.?\s*\n|\. /);
    throw new UsageError(`${first}. ${program} --help lists the flags.`);
  }
}

/** Without `--` npm takes a flag as its own option, and the program would use the default. @throws UsageError */
export function rejectFlagsKeptByNpm(names: readonly string[], environment: Environment, script: string): void {
  const kept = names.find((name) => environment[`npm_config_${name.replaceAll('-', '_')}`] !== undefined);
  if (kept === undefined) return;
  throw new UsageError(`npm kept --${kept} for itself: put -- before the flags, as in ${script} -- --${kept} …`);
}
