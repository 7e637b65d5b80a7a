/** `leasehold scan`: the row of the table, and the ports that a scan gets from the terminal. */

import { resolve } from 'node:path';
import { UsageError } from '../../platform/errors.ts';
import type { Command } from '../command.ts';
import { YES } from '../flags.ts';
import type { Printable } from '../output/cells.ts';
import { startProgress } from '../progress.ts';
import { confirm } from '../prompt.ts';
import { printNotice } from '../terminal.ts';

export const scanCommand: Command = {
  name: 'scan',
  summary: 'Finds secrets in env files and key-shaped strings in a tree, and moves them into the vault',
  about: [
    'Prints where and by which rule, and never a value. What .gitignore names is passed over, but env files are always looked at; so are binary files, files over 1 MiB, .git and node_modules. Links are not followed.',
    'With --move each secret of an env file is stored below --prefix, and a reference to it, NAME=leasehold://path, takes its place: leasehold run --env-file resolves it. It is stored first, and the file is replaced as a whole.',
    'Exit code 3 where something was found and not moved, so that a build can stop on it. A line that holds leasehold:allow is passed over.',
  ],
  arguments: [
    { name: 'DIR', help: 'or a file; where you stand, if left out', count: 'optional', completes: 'directory' },
  ],
  flags: [
    { name: 'move', value: null, help: 'offers to move what env files hold into the vault' },
    { name: 'prefix', value: 'PATH', help: 'where it goes in the vault', completes: 'path' },
    {
      name: 'exclude',
      value: 'PATTERN',
      help: 'passes over what it names, as a line of .gitignore',
      isRepeatable: true,
    },
    { name: 'no-ignore', value: null, help: 'also looks at what .gitignore names' },
    YES,
    { name: 'dry-run', value: null, help: 'only says what would be moved' },
  ],
  examples: [
    { line: 'leasehold scan', does: 'looks at everything below the current folder' },
    { line: 'leasehold scan --move --prefix shop/dev', does: 'asks for each secret of an env file' },
    { line: 'leasehold scan -o json > findings.json', does: 'for a build: ends with 3 where something was found' },
  ],
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const { terminal, signal, output } = invocation;
    const { parsePrefix } = await import('../import/path-names.ts');
    const { moveFindings, report, scan } = await import('../scan/scan.ts');
    const isMoving = invocation.isOn('move');
    if (!isMoving && ['prefix', 'yes', 'dry-run'].some((flag) => invocation.isOn(flag))) {
      throw new UsageError('--prefix, --yes and --dry-run go with --move', 'leasehold scan --help');
    }
    const prefix = parsePrefix(invocation.flag('prefix'));
    if (isMoving && prefix.length === 0) throw new UsageError('--move needs --prefix PATH: where it goes in the vault');
    const root = resolve(terminal.folder, invocation.optional('DIR') ?? '.');
    const progress = startProgress(terminal, 'Scanning');
    const options = {
      root,
      usesIgnoreFiles: !invocation.isOn('no-ignore'),
      excluded: invocation.flags('exclude'),
      signal,
    };
    const scanned = await scan(options, (done) => progress.show(done, null)).finally(() => progress.end());
    const ports = {
      say: (line: string) => printNotice(terminal, line),
      confirm: (question: string) => confirm({ terminal, signal }, question),
      print: (records: readonly Printable[], columns: readonly string[]) => output.records(records, columns, null),
    };
    const ends = isMoving
      ? await moveFindings(scanned, ports, {
          prefix,
          signal,
          asks: !invocation.isOn('yes'),
          isDry: invocation.isOn('dry-run'),
          connect: () => invocation.connect(),
        })
      : null;
    const code = await report(scanned, ends, ports);
    signal.throwIfAborted();
    return code;
  },
};
