/**
 * README's quick start, and docs/tour.md, http.md and audit.md, executed as written: the page's own command starts the
 * server in an empty home, shell blocks run one after the other in one shell, and each prints the output on the page.
 */
import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import { findPort } from '../kit/port.ts';
import { withPlaceholders } from './markdown.ts';
import { openPage, readSteps, type Step } from './page.ts';
import { startInBackground } from './shell.ts';

const START = 'npm start';

/** Contains characters that encoders change. */
const KEY = 'sk-proj-quick+start/4f9c1b77d04a5f2b';
/** The port of the API that the tour starts. */
const API_PORT = '27790';
/** A server in an empty home, started as the page says, and a shell. */
async function openScene(t: TestContext) {
  const { home, place, shell, tidy: tidyPage } = await openPage(t);
  const apiPort = await findPort();
  const tidy = (printed: string): string =>
    tidyPage(printed)
      .replaceAll(String(apiPort), API_PORT)
      .replaceAll(/\blh([as])_[\w-]{43}/g, 'lh$1_…');
  const server = await startInBackground(t, START, 'Ctrl-C stops', place);
  const startupBanner = tidy(server.printed).slice(tidy(server.printed).indexOf('Leasehold is ready.'));
  /** Runs the steps and compares their output with the page. */
  const play = async (steps: readonly Step[]): Promise<void> => {
    for (const { heading, commands, output } of steps) {
      const printed =
        commands === START
          ? (startupBanner.split('\n\nNext, ')[0] ?? '')
          : tidy(await shell.run(commands.replaceAll(API_PORT, String(apiPort))));
      assert.equal(withPlaceholders(printed), withPlaceholders(output), `${heading}\n${commands}`);
    }
    assert.equal(await server.end('SIGTERM'), 0, 'the server stops in order');
  };
  return { home, shell, server, play };
}

test('the quick start of README.md ends with a program that used a key it never saw', async (t) => {
  const upstream = await startUpstream(
    t,
    ({ headers }, response) => {
      response.end(headers.authorization === `Bearer ${KEY}` ? `{"key":"${KEY}"}` : 'another key');
    },
    'http',
  );
  const [start, store, use, ...others] = readSteps('README.md').map(({ commands }) => commands);
  assert.deepEqual([start, others], [START, []]);
  const lines = `${store}\n${use}`.split('\n');
  assert.equal(lines.length, 5);
  const { home, shell, server } = await openScene(t);
  const [path = '', put = '', agent = '', policy = '', run = ''] = lines;
  await shell.run(path);
  // The user's own project is not this checkout.
  await shell.run(`cd '${mkdtempSync(join(home, 'project-'))}'`);
  assert.match(await shell.run(put, { answers: [KEY, KEY] }), /^service +openai$/m);
  assert.match(await shell.run(agent), /claude mcp add leasehold -- \S*leasehold mcp --agent coder/);
  assert.match(await shell.run(policy), /Created policy coder/);
  // The double takes the place of the real API, which the catalogue names.
  const double = `--origin http://127.0.0.1:${upstream.port} --allow-network 127.0.0.0/8`;
  await shell.run(`leasehold target put openai/key --service openai ${double}`);
  assert.equal(await shell.run(run), '{"key":"[secret]"}');
  assert.equal(upstream.requests.at(-1)?.url, '/v1/models');
  const entries = await shell.run('leasehold audit list --agent-name coder --event credential.use --field result');
  assert.equal(entries, 'allowed');
  assert.equal(await server.end('SIGTERM'), 0);
});

for (const [page, fewestSteps] of [
  ['docs/tour.md', 7],
  ['docs/http.md', 6],
  ['docs/audit.md', 9],
] as const) {
  test(`the commands of ${page} print what it shows`, async (t) => {
    const steps = readSteps(page);
    assert.ok(steps.length >= fewestSteps);
    await (await openScene(t)).play(steps);
  });
}
