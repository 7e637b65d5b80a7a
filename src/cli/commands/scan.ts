/** `leasehold scan`: the command and the terminal ports that a scan uses. */

import { resolve } from 'node:path';
import { UsageError } from '../../platform/errors.ts';
import { defineCommand } from '../command.ts';
import { CONFIRMATION_FLAGS, list, text, toggle } from '../flags.ts';
import type { Printable } from '../output/cells.ts';
import { startProgress } from '../progress.ts';
import { confirm } from '../prompt.ts';
import { printNotice } from '../terminal.ts';

export const scanCommand = defineCommand({
  name: 'scan',
  summary: 'Find secrets in files, and move them to the vault',
  about: [
    'Reports the secrets of env files and strings that look like keys, with their position and rule, never the value. Skips binary files, files over 1 MiB, .git, node_modules and files that .gitignore names, except env files. Does not follow links.',
    'With --move, each secret of an env file is stored below --prefix and replaced by a reference, NAME=leasehold://path, which leasehold run --env-file resolves. The file is replaced atomically, after the secrets are stored.',
    'The exit code is 3 if a secret was found and not moved, so that a build can fail. Lines that contain leasehold:allow are ignored.',
  ],
  arguments: [
    {
      name: 'DIR',
      help: 'directory or file to scan (default: the current directory)',
      count: 'optional',
      completes: 'directory',
    },
  ],
  flags: {
    move: toggle('move the secrets of env files to the vault, after confirmation'),
    prefix: text('PATH', 'store moved secrets below this path', 'path'),
    exclude: list('PATTERN', 'skip files that match this .gitignore pattern'),
    'no-ignore': toggle('also scan files that .gitignore names'),
    ...CONFIRMATION_FLAGS,
  },
  examples: [
    { line: 'leasehold scan', does: 'scan the current directory' },
    { line: 'leasehold scan --move --prefix shop/dev', does: 'ask for each secret of an env file' },
    { line: 'leasehold scan -o json > findings.json', does: 'in a build: exits with 3 if a secret is found' },
  ],
  async run(invocation, flags, directory) {
    const { terminal, signal, output } = invocation;
    const { parsePrefix } = await import('../import/path-names.ts');
    const { moveFindings, report, scan } = await import('../scan/scan.ts');
    const { move: isMoving, yes, 'dry-run': isDry } = flags;
    if (!isMoving && (flags.prefix !== null || yes || isDry)) {
      throw new UsageError('--prefix, --yes and --dry-run require --move', 'leasehold scan --help');
    }
    const prefix = parsePrefix(flags.prefix);
    if (isMoving && prefix.length === 0) throw new UsageError('--move requires --prefix PATH');
    const root = resolve(terminal.workingDirectory, directory ?? '.');
    const progress = startProgress(terminal, 'Scanning');
    const options = {
      root,
      usesIgnoreFiles: !flags['no-ignore'],
      excluded: flags.exclude,
      signal,
    };
    const scanned = await scan(options, (done) => progress.show(done, null)).finally(() => progress.end());
    const ports = {
      say: (line: string) => printNotice(terminal, line),
      confirm: (question: string) => confirm({ terminal, signal }, question),
      print: (records: readonly Printable[], columns: readonly string[]) => output.records(records, columns, null),
    };
    const outcomes = isMoving
      ? await moveFindings(scanned, ports, {
          prefix,
          signal,
          asks: !yes,
          isDry,
          connect: () => invocation.connect(),
        })
      : null;
    const code = await report(scanned, outcomes, ports);
    signal.throwIfAborted();
    return code;
  },
});
