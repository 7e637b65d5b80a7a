/** Loaded before the tests of a mutant: replaces its source file with the mutant in every thread. */
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import type { Mutant } from './mutants.ts';

const mutant: Mutant | null = JSON.parse(process.env['LEASEHOLD_TEST_MUTANT'] ?? 'null');

if (mutant !== null) {
  const url = pathToFileURL(mutant.file).href;
  registerHooks({
    load(asked, context, next) {
      const loaded = next(asked, context);
      if (asked !== url) return loaded;
      const text = String(loaded.source);
      return { ...loaded, source: text.slice(0, mutant.start) + mutant.replacement + text.slice(mutant.end) };
    },
  });
}
