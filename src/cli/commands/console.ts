/** The command `console`. */
import { OPERATOR_PREFIX } from '../../core/names.ts';
import { toggle } from '../../flags/flag.ts';
import { type Command, defineCommand, type Invocation } from '../command.ts';
import { consoleUrl, openInBrowser } from '../console-link.ts';
import { printNotice } from '../terminal.ts';

/** Whether the settings name an operator, whose session can be handed over. */
function isOperator({ settings }: Invocation): boolean {
  const who = settings.identity.value;
  return (who.kind === 'agent' || who.kind === 'session') && who.name.startsWith(OPERATOR_PREFIX);
}

export const consoleCommand: Command = defineCommand({
  name: 'console',
  about: [
    'With --operator NAME, or after leasehold login --operator NAME, the browser is signed in by a code that works once, for a minute. Otherwise sign in there: with a passkey, with an identity provider, or with a token.',
  ],
  flags: { 'no-open': toggle('print the address and open nothing') },
  printsNoRecords: true,
  async run(invocation, flags) {
    const { terminal, settings, signal } = invocation;
    const url = consoleUrl(settings.address.value);
    let link = url;
    if (isOperator(invocation)) {
      // WHY another client: the session of the command would end before the browser takes it over.
      const vault = await invocation.reconnect();
      const { code } = await vault.signIn.issueHandoff({ signal });
      link = `${url}#handoff=${code}`;
    } else if (settings.identity.value.kind === 'token') {
      printNotice(terminal, 'The token is not passed on to a browser: paste it into the page.');
    }
    if (!flags['no-open'] && (await openInBrowser(terminal, link))) {
      printNotice(terminal, `The browser opens ${url}. If it does not, run leasehold console --no-open.`);
      return;
    }
    terminal.stdout.write(`${link}\n`);
  },
});
