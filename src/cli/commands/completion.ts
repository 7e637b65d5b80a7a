/** `leasehold completion`: what a shell needs to complete our words. The scripts ask the command itself at each key press. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { UsageError } from '../../platform/errors.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../errors.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

export const completion: Command = {
  name: 'completion',
  summary: 'Prints what a shell needs to complete commands, flags, paths and names',
  about: [
    'Paths are asked of the service as whoever the command would ask as, and each look is a credential.list in the audit log, for an agent also a login. Names of agents and policies are asked with an administrator’s token alone. What takes longer than a second is given up.',
  ],
  arguments: [{ name: 'SHELL', help: SHELLS.join(', '), count: 'one', completes: SHELLS }],
  examples: [
    { line: 'source <(leasehold completion bash)', does: 'in ~/.bashrc' },
    { line: 'source <(leasehold completion zsh)', does: 'in ~/.zshrc, behind compinit' },
    { line: 'leasehold completion fish | source', does: 'in ~/.config/fish/config.fish' },
  ],
  asksService: false,
  run({ argument, output }) {
    const shell = SHELLS.find((known) => known === argument('SHELL'));
    if (shell === undefined) throw new UsageError(`SHELL: must be one of ${SHELLS.join(', ')}`);
    const file = join(import.meta.dirname, '..', 'completion', `leasehold.${shell}`);
    output.text(readFileSync(file, 'utf8').trimEnd());
    return Promise.resolve(EXIT.OK);
  },
};
