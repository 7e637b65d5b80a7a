/** `leasehold completion`: prints a completion script, which calls `leasehold __complete` on each key press. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { UsageError } from '../../platform/errors.ts';
import { defineCommand } from '../command.ts';
import { EXIT } from '../errors.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

export const completion = defineCommand({
  name: 'completion',
  summary: 'Print a completion script for bash, zsh or fish',
  about: [
    'The script completes commands, flags, files, paths and names. Paths come from the service with your usual login: each completion writes a credential.list entry to the audit log, and for an agent a login entry too. Names of agents and policies are completed only with an administrator’s token. A completion that takes longer than a second is abandoned.',
  ],
  arguments: [{ name: 'SHELL', help: SHELLS.join(', '), count: 'one', completes: SHELLS }],
  examples: [
    { line: 'source <(leasehold completion bash)', does: 'for bash: add to ~/.bashrc' },
    { line: 'source <(leasehold completion zsh)', does: 'for zsh: add to ~/.zshrc, after compinit' },
    { line: 'leasehold completion fish | source', does: 'for fish: add to ~/.config/fish/config.fish' },
  ],
  isLocal: true,
  run({ output }, _flags, name) {
    const shell = SHELLS.find((known) => known === name);
    if (shell === undefined) throw new UsageError(`SHELL: must be one of ${SHELLS.join(', ')}`);
    const file = join(import.meta.dirname, '..', 'completion', `leasehold.${shell}`);
    output.text(readFileSync(file, 'utf8').trimEnd());
    return Promise.resolve(EXIT.OK);
  },
});
