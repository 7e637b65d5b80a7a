/** Runs `leasehold` from a test shell: a completion may take as long as a busy machine needs. */
import { printCompletions } from '../../src/cli/completion/complete.ts';
import { COMMANDS } from '../../src/cli/table.ts';
import { processTerminal } from '../../src/cli/terminal.ts';
import { challengeService } from '../../src/server/announcement.ts';
import { LONG_TIMEOUTS } from '../kit/commandline.ts';

const [first, ...others] = process.argv.slice(2);
if (first === '__complete')
  await printCompletions(
    others,
    COMMANDS,
    processTerminal(0o022, async (...asked) => challengeService(...asked)),
    LONG_TIMEOUTS,
  );
else await import('../../src/bin/leasehold.ts');
