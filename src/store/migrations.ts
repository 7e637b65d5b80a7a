/** Numbered migrations: `<number>_<name>.sql` in a folder a dialect. A database of a newer schema is refused. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
}

/** In order; the numbers are 1, 2, 3 … without gap. */
export function readMigrations(dialect: 'sqlite' | 'postgres'): Migration[] {
  const folder = join(import.meta.dirname, 'migrations', dialect);
  return readdirSync(folder)
    .filter((file) => file.endsWith('.sql'))
    .sort()
    .map((file, index) => {
      const number = Number.parseInt(file, 10);
      if (number !== index + 1) throw new Error(`migration ${file} is out of order`);
      return { number, name: file.slice(0, -'.sql'.length), sql: readFileSync(join(folder, file), 'utf8') };
    });
}
