/** Whether what the allow-list names is there, and is nobody else's to change. Looked at once, at the start. */

import { constants, type Stats } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { basename, isAbsolute } from 'node:path';
import { errnoSuffix } from '../platform/errno.ts';
import { UsageError } from '../platform/errors.ts';
import { checkTrustedPath } from '../platform/ownership.ts';
import type { AllowedCommand } from './allowlist.ts';

/** An argument is a program to them, or the name of one. */
const RUNS_ITS_ARGUMENTS =
  /^(?:(?:ba|da|z|fi|k|mk|c|tc|a)?sh|busybox|env|printenv|xargs|find|sed|[gmn]?awk|perl|ruby|python[\d.]*|node|nodejs|deno|bun|php|lua|tclsh|ssh|sudo|doas|su|nice|nohup|timeout|setsid|strace|watch|make|npx|npm)$/;

/** @throws UsageError */
export async function checkPrograms(commands: readonly AllowedCommand[]): Promise<void> {
  for (const command of commands) await checkProgram(command);
}

async function checkProgram({ name, program, folder, ...others }: AllowedCommand): Promise<void> {
  const at = `commands.${name}`;
  if (others.extraArguments !== null && others.arguments.length === 0 && RUNS_ITS_ARGUMENTS.test(basename(program))) {
    throw new UsageError(
      `${at}.extra_arguments: must not stand with ${basename(program)}, which runs what its arguments say, unless arguments name a program of yours`,
    );
  }
  const found = await checkTrustedPath(program, `${at}.program`);
  if (!found.isFile()) throw new UsageError(`${at}.program: must be a file`);
  if (RUNS_ITS_ARGUMENTS.test(basename(program))) await checkScripts(others.arguments, folder, `${at}.arguments`);
  await access(program, constants.X_OK).catch(() => {
    throw new UsageError(`${at}.program: must be executable`);
  });
  if (!(await look(folder, `${at}.folder`)).isDirectory()) throw new UsageError(`${at}.folder: must be a directory`);
}

/** An interpreter runs the file that an argument names, which so is the program. */
async function checkScripts(given: readonly string[], folder: string, field: string): Promise<void> {
  for (const argument of given) {
    const path = isAbsolute(argument) ? argument : `${folder}/${argument}`;
    const found = await stat(path).catch(() => null);
    if (found?.isFile() === true) await checkTrustedPath(path, field);
  }
}

async function look(path: string, field: string): Promise<Stats> {
  try {
    return await stat(path);
  } catch (error) {
    throw new UsageError(`${field}: cannot be read${errnoSuffix(error)}`);
  }
}
