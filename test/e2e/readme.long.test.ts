/**
 * The README, docs/http.md and docs/audit.md, executed as written: the README's own command starts the service in an
 * empty home, shell blocks run one after the other in one shell, and each prints what the page shows. `UPDATE_TOUR=1`
 * writes the transcript of the README, docs/tour.md.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ROOT } from '../conventions/source.ts';
import { findPort } from '../kit/port.ts';
import { STORE } from '../kit/stores.ts';
import { withPlaceholders } from './markdown.ts';
import { openPage, readSteps, type Step } from './page.ts';
import { startInBackground } from './shell.ts';

const START = 'npm start';
/** This block runs the tests themselves; it is the only one that is not executed. */
const TEST = 'npm test';
const TOUR = join(ROOT, 'docs/tour.md');

/** The page's change of the SQLite file, applied to a database. */
const BLAME_IN_FILE = /^blame\(\) \{\n[\s\S]*?leasehold\.db[\s\S]*?\n\}\n/m;
const BLAME_IN_DATABASE = `blame() {
  node_modules/.bin/node --input-type=module -e '
    import postgres from "postgres";
    const [seq, name] = process.argv.slice(1);
    const sql = postgres(process.env.LEASEHOLD_DATABASE_URL);
    await sql\`UPDATE leasehold.audit_entries SET agent_name = \${name} WHERE seq = \${seq}\`;
    await sql.end();
  ' "$ENTRY" "$1"
}
`;
/** The port of the API that the tour starts. */
const API_PORT = '27790';
/** The command for the selected store, with a port that is free. */
function toRun(commands: string, apiPort: number): string {
  const here = commands.replaceAll(API_PORT, String(apiPort));
  return STORE === 'sqlite' ? here : here.replace(BLAME_IN_FILE, () => BLAME_IN_DATABASE);
}

function toTour(steps: readonly Step[]): string {
  const parts = steps.map(({ heading, commands, output }, index) => {
    const title = heading === steps[index - 1]?.heading ? '' : `## ${heading}\n\n`;
    const printed = output === '' ? '' : `\n\n\`\`\`text\n${output}\n\`\`\``;
    return `${title}\`\`\`sh\n${commands}\n\`\`\`${printed}\n`;
  });
  const head =
    '# Transcript of the tour\n\n' +
    "The README's commands and their output. `UPDATE_TOUR=1 npm test -- test/e2e/readme.long.test.ts` writes this\n" +
    'page, and the same test compares it with the README. Tokens are cut short.\n';
  return [head, ...parts].join('\n');
}

/** A service in an empty home, started as the README says, and a shell. */
async function openScene(t: TestContext) {
  const { place, shell, tidy: tidyPage } = await openPage(t);
  const apiPort = await findPort();
  const tidy = (printed: string): string =>
    tidyPage(printed)
      .replaceAll(String(apiPort), API_PORT)
      // The location of the vault is printed if it is not the data directory.
      .replace(/^ {2}vault +PostgreSQL at .+\n/m, '')
      .replaceAll(/\blh([as])_[\w-]{43}/g, 'lh$1_…');
  const service = await startInBackground(t, START, 'Ctrl-C stops', place);
  const startupBanner = tidy(service.printed).slice(tidy(service.printed).indexOf('Leasehold is ready.'));
  /** Runs the steps and compares their output with the page. Resolves to the steps as executed. */
  const play = async (steps: readonly Step[]): Promise<Step[]> => {
    const ran: Step[] = [];
    for (const { heading, commands, output } of steps) {
      if (commands === TEST) continue;
      const printed =
        commands === START
          ? (startupBanner.split('\n\nNext, ')[0] ?? '')
          : tidy(await shell.run(toRun(commands, apiPort)));
      assert.equal(withPlaceholders(printed), withPlaceholders(output), `${heading}\n${commands}`);
      ran.push({ heading, commands, output: printed });
    }
    assert.equal(await service.end('SIGTERM'), 0, 'the service stops in order');
    return ran;
  };
  return { play };
}

test('the README’s commands print what it shows, and docs/tour.md is their transcript', async (t) => {
  const steps = readSteps('README.md');
  assert.deepEqual(
    steps.slice(0, 2).map(({ commands }) => commands),
    [START, TEST],
  );
  assert.equal(steps.filter(({ commands }) => BLAME_IN_FILE.test(commands)).length, 1);
  const ran = await (await openScene(t)).play(steps);
  if (process.env['UPDATE_TOUR']) writeFileSync(TOUR, toTour(ran));
  assert.equal(
    withPlaceholders(readFileSync(TOUR, 'utf8')),
    withPlaceholders(toTour(ran)),
    'docs/tour.md is of another README: UPDATE_TOUR=1 npm test -- test/e2e/readme.long.test.ts writes it',
  );
});

test('the commands of docs/http.md print what it shows', async (t) => {
  const steps = readSteps('docs/http.md');
  assert.ok(steps.length >= 6);
  await (await openScene(t)).play(steps);
});

test('the commands of docs/audit.md print what it shows', async (t) => {
  const steps = readSteps('docs/audit.md');
  assert.ok(steps.length >= 9);
  await (await openScene(t)).play(steps);
});
