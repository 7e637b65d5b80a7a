/** Numbered migrations: `<number>_<name>.sql`, in one directory per dialect. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
}

/** Returns the migrations in order; the numbers are 1, 2, 3 … without gaps. */
export function readMigrations(dialect: 'sqlite' | 'postgres'): Migration[] {
  const directory = join(import.meta.dirname, 'migrations', dialect);
  return readdirSync(directory)
    .filter((file) => file.endsWith('.sql'))
    .sort()
    .map((file, index) => {
      const number = Number.parseInt(file, 10);
      if (number !== index + 1) throw new Error(`migration ${file} is out of order`);
      return { number, name: file.slice(0, -'.sql'.length), sql: readFileSync(join(directory, file), 'utf8') };
    });
}
