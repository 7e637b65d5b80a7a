/** Sources of settings: flags, environment variables and file layers. */
import { UsageError } from '../../platform/errors.ts';
import type { FileSettings, UserDirs } from './files.ts';
import type { Precedence } from './settings.ts';

/** The value of a flag, or null. */
export type FlagReader = (name: string) => string | null;

/** One layer of a settings file: the profile, or the top level. */
export interface Layer {
  readonly settings: FileSettings;
  readonly source: string;
  readonly level: Precedence;
}

/** @throws UsageError for an empty variable */
export function readVariable({ environment }: Pick<UserDirs, 'environment'>, name: string): string | null {
  const value = environment[name];
  if (value === '') throw new UsageError(`${name} is empty: set or unset it`);
  return value ?? null;
}
