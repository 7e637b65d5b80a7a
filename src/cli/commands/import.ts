/** `leasehold import`: the row of the table, and the ports that an import gets from the terminal. */

import { basename } from 'node:path';
import { Secret } from '../../core/secret.ts';
import { UsageError } from '../../platform/errors.ts';
import type { Command, Invocation } from '../command.ts';
import { YES } from '../flags.ts';
import { inputName, readInput } from '../given-file.ts';
import type { Ports } from '../import/import.ts';
import type { ImportSource } from '../import/item.ts';
import { toTable } from '../output/table.ts';
import { startProgress } from '../progress.ts';
import { confirm } from '../prompt.ts';
import { mayBeAdministrator } from '../settings/settings.ts';
import { hasColours, printNotice } from '../terminal.ts';

const MOST_ROWS_SHOWN = 200;
const MAX_SOURCE_MIB = 64;

export const importCommand: Command = {
  name: 'import',
  summary: 'Stores what a .env file, a JSON file, Vault, OpenBao, 1Password or Bitwarden holds',
  about: [
    'Shows what it would store and asks before it does. Nothing in the vault is overwritten: what exists gets a new version. Nothing in the source is changed.',
    'Names become paths: letters lose their accents, each run of characters that a path cannot have becomes one -. Two values that would get the same path are both left out, and named.',
    'Exit code 2 where something could not be stored or Vault did not answer well, 3 where a value was left out.',
  ],
  arguments: [
    {
      name: 'FILE',
      help: '.env, .json, .1pux or .csv; - for standard input; none for Vault',
      count: 'optional',
      completes: 'file',
    },
  ],
  flags: [
    {
      name: 'from',
      value: 'env|json|1password|bitwarden',
      help: 'what the file is, where its name and its beginning do not tell',
      completes: ['env', 'json', '1password', 'bitwarden'],
    },
    { name: 'prefix', value: 'PATH', help: 'what goes before every path', completes: 'path' },
    { name: 'if-new', value: null, help: 'skips what exists' },
    { name: 'compare', value: null, help: 'retrieves what exists, and skips it where it is the same' },
    {
      name: 'vault-addr',
      value: 'URL',
      help: 'of a Vault or OpenBao (VAULT_ADDR, BAO_ADDR); its token comes from VAULT_TOKEN or BAO_TOKEN',
    },
    { name: 'mount', value: 'PATH', help: 'where its KV engine of version 2 is mounted (default secret)' },
    { name: 'below', value: 'PATH', help: 'only what is below this folder of the mount' },
    YES,
    { name: 'dry-run', value: null, help: 'only says what would be done' },
  ],
  examples: [
    { line: 'leasehold import .env --prefix shop/dev', does: 'shows the plan, and asks' },
    { line: 'leasehold import export.1pux --prefix people/ann --dry-run', does: 'shows the plan alone' },
    { line: 'leasehold import --vault-addr https://vault.example.org:8200 --mount kv', does: 'all of a mount' },
  ],
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const { parsePrefix } = await import('../import/path-names.ts');
    const { followUpSteps } = await import('../import/report.ts');
    const { runImport } = await import('../import/import.ts');
    const prefix = parsePrefix(invocation.flag('prefix'));
    const file = invocation.optional('FILE');
    const address = invocation.flag('vault-addr') ?? (file === null ? vaultVariable(invocation, 'ADDR') : null);
    if ((file === null) === (address === null)) {
      throw new UsageError(
        'give a FILE, or --vault-addr URL (VAULT_ADDR, BAO_ADDR), and not both',
        'leasehold import --help',
      );
    }
    const { reading, isEnv } =
      file === null ? await readVault(invocation, address ?? '') : await readFile(invocation, file);
    const vault = invocation.connect();
    return runImport(vault, reading, portsOf(invocation), {
      prefix,
      onlyNew: invocation.isOn('if-new'),
      compares: invocation.isOn('compare'),
      isDry: invocation.isOn('dry-run'),
      asks: !invocation.isOn('yes'),
      // An agent sees what it may list.
      seesAll: mayBeAdministrator(invocation.settings.identity.value),
      followUpSteps: followUpSteps({ file: file === '-' ? null : file, isEnv, vault: address }),
    });
  },
};

interface Read {
  readonly reading: ImportSource;
  readonly isEnv: boolean;
}

async function readFile(invocation: Invocation, file: string): Promise<Read> {
  const { formatOf, parseFormat, readSource } = await import('../import/sources.ts');
  const wanted = parseFormat(invocation.flag('from'));
  const name = basename(inputName(file));
  const bytes = await readInput(invocation, file, MAX_SOURCE_MIB);
  const format = formatOf(bytes, name, wanted);
  return { reading: await readSource(bytes, name, format), isEnv: format === 'env' };
}

/** OpenBao reads its own before those of Vault. */
function vaultVariable({ terminal }: Invocation, name: string): string | null {
  return terminal.environment[`BAO_${name}`] || terminal.environment[`VAULT_${name}`] || null;
}

async function readVault(invocation: Invocation, from: string): Promise<Read> {
  const { Kv2, parseVaultAddress } = await import('../import/kv2.ts');
  const { readKv2 } = await import('../import/kv2-source.ts');
  const { terminal, signal } = invocation;
  const token = vaultVariable(invocation, 'TOKEN');
  const address = parseVaultAddress(from);
  if (token === null) {
    throw new UsageError('there is no token for Vault', 'Set VAULT_TOKEN or BAO_TOKEN; a token is never an argument.');
  }
  const mount = segmentsOf('mount', invocation.flag('mount') ?? 'secret').join('/');
  const below = segmentsOf('below', invocation.flag('below') ?? '');
  const kv2 = new Kv2({ address, token: new Secret(token), namespace: vaultVariable(invocation, 'NAMESPACE'), mount });
  const progress = startProgress(terminal, 'Reading');
  try {
    const options = { mount, below, signal, progress: (done: number, of: number) => progress.show(done, of) };
    return { reading: await readKv2(kv2, options), isEnv: false };
  } finally {
    progress.end();
  }
}

/** Folders of Vault, slashes at their ends or not. @throws UsageError for what would lead elsewhere */
function segmentsOf(flag: string, text: string): readonly string[] {
  const segments = text.split('/').filter((segment) => segment !== '');
  if (segments.some((segment) => segment === '.' || segment === '..'))
    throw new UsageError(`--${flag}: must not have . or ..`);
  return segments;
}

function portsOf({ terminal, output, signal }: Invocation): Ports {
  return {
    signal,
    say: (line) => printNotice(terminal, line),
    showPlan: (records, columns) => {
      const { stderr } = terminal;
      const look = { isColoured: hasColours(terminal, stderr), width: stderr.columns ?? null };
      stderr.write(toTable(records.slice(0, MOST_ROWS_SHOWN), columns, look));
      if (records.length > MOST_ROWS_SHOWN)
        printNotice(terminal, `… and ${records.length - MOST_ROWS_SHOWN} more: see --dry-run.`);
    },
    confirm: (question) => confirm({ terminal, signal }, question),
    progress: (what) => startProgress(terminal, what),
    print: (records, columns) => output.records(records, columns, null),
  };
}
