/**
 * Preloaded into the service: copies its data directory before each call that changes a file or the database, so that
 * each copy equals the state after a kill at that point. STEPS_OF names the data directory, STEPS_INTO the directory of
 * the copies.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { DatabaseSync, StatementSync } from 'node:sqlite';

const { STEPS_OF: dataDir = '', STEPS_INTO: into = '' } = process.env;
const { cpSync, existsSync } = fs;
let step = 0;

function copy(): void {
  step += 1;
  if (existsSync(dataDir)) cpSync(dataDir, join(into, String(step).padStart(4, '0')), { recursive: true });
}

function copyBefore(owner: object, name: string, isStep: (argument: unknown) => boolean): void {
  const original: unknown = Reflect.get(owner, name);
  if (typeof original !== 'function') throw new Error(`${name} is not a function`);
  Reflect.set(owner, name, function (this: unknown, ...values: unknown[]) {
    if (isStep(values[0])) copy();
    return Reflect.apply(original, this, values);
  });
}

const isOfDataDir = (argument: unknown): boolean =>
  typeof argument === 'number' || (typeof argument === 'string' && argument.startsWith(dataDir));
for (const name of ['openSync', 'writeFileSync', 'fsyncSync', 'renameSync', 'rmSync', 'mkdirSync', 'chmodSync']) {
  copyBefore(fs, name, isOfDataDir);
}
syncBuiltinESMExports();
copyBefore(DatabaseSync.prototype, 'exec', () => true);
copyBefore(DatabaseSync.prototype, 'close', () => true);
copyBefore(StatementSync.prototype, 'run', () => true);
