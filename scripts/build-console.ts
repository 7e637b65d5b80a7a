// Builds the web console into console/dist, which the server serves: names with hashes, and each file compressed here
// and never while it is served. It builds in a temporary directory, which then replaces the previous output.

import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'vite';
import { CONSOLE_OUTPUT, CONSOLE_STAMP, consoleFingerprint, isConsoleBuilt } from './console-state.mjs';

const ROOT = path.resolve(import.meta.dirname, '..');

async function buildConsole(): Promise<void> {
  const fingerprint = consoleFingerprint();
  const directory = `${CONSOLE_OUTPUT}.${process.pid}`;
  try {
    await build({
      root: path.join(ROOT, 'console'),
      base: '/console/',
      configFile: false,
      envFile: false,
      logLevel: 'error',
      publicDir: false,
      cacheDir: path.join(ROOT, 'node_modules/.cache/vite'),
      build: {
        outDir: directory,
        emptyOutDir: true,
        target: ['chrome123', 'firefox125', 'safari17.5'],
        // The policy allows no data: scripts, and separate files are cached.
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false },
        reportCompressedSize: false,
      },
    });
    compress(directory);
    writeFileSync(path.join(directory, CONSOLE_STAMP), fingerprint);
    rmSync(CONSOLE_OUTPUT, { recursive: true, force: true });
    renameSync(directory, CONSOLE_OUTPUT);
  } catch (error) {
    // Another process may have finished the same build first.
    if (!isConsoleBuilt()) throw error;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function compress(directory: string): void {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  for (const entry of files) {
    const file = path.join(entry.parentPath, entry.name);
    const bytes = readFileSync(file);
    const parameters = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
    writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params: parameters }));
    writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
  }
}

if (!isConsoleBuilt()) await buildConsole();
