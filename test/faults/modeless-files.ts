/**
 * Preloaded into a program: files and directories below MODELESS_DIR behave as on FAT, on a Windows drive under WSL,
 * and on a FUSE mount without modes. Each one has the mode 0777 after it was created, and `chmod` succeeds without an
 * effect. SQLite creates its files itself, as with a umask of 0.
 */
import fs, { type PathLike } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const DIR = process.env['MODELESS_DIR'] ?? '';
const OPEN = 0o777;
const { chmodSync, existsSync, mkdirSync, openSync, mkdtempSync } = fs;
const { open, mkdir } = fs.promises;

const isBelow = (path: unknown): boolean => DIR !== '' && String(path).startsWith(DIR);
const loosen = (path: unknown): void => {
  if (isBelow(path) && existsSync(String(path))) chmodSync(String(path), OPEN);
};

/** Replaces a function of Node; what it created is then open to everyone. */
function loosenAfter(owner: object, name: string, original: (...values: never[]) => unknown): void {
  Reflect.set(owner, name, (...values: never[]) => {
    const result = original(...values);
    if (!(result instanceof Promise)) {
      loosen(values[0]);
      if (name === 'mkdtempSync') loosen(result);
      return result;
    }
    return result.then((opened: unknown) => {
      loosen(values[0]);
      if (name === 'open' && isBelow(values[0])) Reflect.set(Object(opened), 'chmod', async () => undefined);
      return opened;
    });
  });
}

loosenAfter(fs, 'openSync', openSync);
loosenAfter(fs, 'mkdirSync', mkdirSync);
loosenAfter(fs, 'mkdtempSync', mkdtempSync);
loosenAfter(fs.promises, 'open', open);
loosenAfter(fs.promises, 'mkdir', mkdir);
fs.chmodSync = (path: PathLike, mode) => {
  if (!isBelow(path)) chmodSync(path, mode);
};
process.umask(0);
process.umask = () => 0;
syncBuiltinESMExports();
