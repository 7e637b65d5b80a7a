/** Places that say settings: flags, variables, and the layers of files. */
import { UsageError } from '../../platform/errors.ts';
import type { FileSettings, UserDirs } from './files.ts';
import type { Precedence } from './settings.ts';

/** The value of a flag, or null. */
export type FlagReader = (name: string) => string | null;

/** A layer of settings from a file: the profile's before the file's own. */
export interface Layer {
  readonly settings: FileSettings;
  readonly by: string;
  readonly level: Precedence;
}

/** @throws UsageError for an empty one: it was meant to say something */
export function readVariable({ environment }: Pick<UserDirs, 'environment'>, name: string): string | null {
  const value = environment[name];
  if (value === '') throw new UsageError(`${name} is empty: give it a value, or unset it`);
  return value ?? null;
}
