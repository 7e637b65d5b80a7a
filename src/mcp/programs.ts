/** Checks, at the start of the server, that the allowed programs exist and that no other user can change them. */

import { constants, type Stats } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { basename, isAbsolute } from 'node:path';
import { errnoSuffix } from '../platform/errno.ts';
import { UsageError } from '../platform/errors.ts';
import { checkTrustedPath } from '../platform/ownership.ts';
import type { AllowedCommand } from './allowlist.ts';

/** Programs that run what an argument contains or names. */
const RUNS_ITS_ARGUMENTS =
  /^(?:(?:ba|da|z|fi|k|mk|c|tc|a)?sh|busybox|env|printenv|xargs|find|sed|[gmn]?awk|perl|ruby|python[\d.]*|node|nodejs|deno|bun|php|lua|tclsh|ssh|sudo|doas|su|nice|nohup|timeout|setsid|strace|watch|make|npx|npm)$/;

/** @throws UsageError */
export async function checkPrograms(commands: readonly AllowedCommand[]): Promise<void> {
  for (const command of commands) await checkProgram(command);
}

async function checkProgram({ name, program, directory, ...others }: AllowedCommand): Promise<void> {
  const at = `commands.${name}`;
  if (others.extraArguments !== null && others.arguments.length === 0 && RUNS_ITS_ARGUMENTS.test(basename(program))) {
    throw new UsageError(
      `${at}.extra_arguments: not allowed with ${basename(program)}, which runs what its arguments name; name a program of yours in arguments`,
    );
  }
  const found = await checkTrustedPath(program, `${at}.program`);
  if (!found.isFile()) throw new UsageError(`${at}.program: must be a file`);
  if (RUNS_ITS_ARGUMENTS.test(basename(program))) await checkScripts(others.arguments, directory, `${at}.arguments`);
  await access(program, constants.X_OK).catch(() => {
    throw new UsageError(`${at}.program: must be executable`);
  });
  if (!(await status(directory, `${at}.directory`)).isDirectory())
    throw new UsageError(`${at}.directory: must be a directory`);
}

/** An interpreter runs the file that an argument names, so that file is checked like the program. */
async function checkScripts(given: readonly string[], directory: string, field: string): Promise<void> {
  for (const argument of given) {
    const path = isAbsolute(argument) ? argument : `${directory}/${argument}`;
    const found = await stat(path).catch(() => null);
    if (found?.isFile() === true) await checkTrustedPath(path, field);
  }
}

async function status(path: string, field: string): Promise<Stats> {
  try {
    return await stat(path);
  } catch (error) {
    throw new UsageError(`${field}: cannot be read${errnoSuffix(error)}`);
  }
}
