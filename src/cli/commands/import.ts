/** `leasehold import`: the command, and the files and secret stores that it reads. */
import { basename, resolve } from 'node:path';
import { choice, type FlagValues, text, toggle } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { Secret } from '../../vault/credentials/credential.ts';
import { CONFIRMATION_FLAGS, type Command, defineCommand, type Invocation } from '../command.ts';
import type { EnvFile } from '../import/env-rewrite.ts';
import { parsePrefix } from '../import/import-plan.ts';
import { runImport } from '../import/run-import.ts';
import { type ImportSource, readEnv, SOURCE_FORMATS, type SourceFormat } from '../import/source.ts';
import { decodeUtf8, inputName, readInput } from '../input.ts';
import { startProgress } from '../progress.ts';
import { mayBeAdministrator } from '../settings/settings.ts';

const MAX_SOURCE_MIB = 64;

const FLAGS = {
  from: choice(
    SOURCE_FORMATS.join('|'),
    SOURCE_FORMATS,
    'format of the file (default: detected from its name and content)',
  ),
  prefix: text('PATH', 'prefix of every new path'),
  all: toggle('store every value of a .env file, and not only secrets'),
  rewrite: toggle('replace the stored values of a .env file by references'),
  'if-new': toggle('skip paths that exist'),
  compare: toggle('retrieve existing values and skip those that are equal'),
  'vault-addr': text(
    'URL',
    'address of Vault or OpenBao (VAULT_ADDR, BAO_ADDR); the token comes from VAULT_TOKEN or BAO_TOKEN',
  ),
  mount: text('PATH', 'mount path of the KV version 2 engine (default secret)'),
  below: text('PATH', 'import only secrets below this path of the mount'),
  ...CONFIRMATION_FLAGS,
};

const importCommand = defineCommand({
  name: 'import',
  about: [
    'Shows the plan and asks for confirmation. An existing credential receives a new version; nothing is overwritten. The source is not changed.',
    'A key that the catalogue recognises by its form receives the targets of its service, so that agents can use it without its value. Of a .env file only values that look like secrets are stored; --all stores every value.',
    'With --rewrite, the stored values of a .env file are replaced by references, which leasehold run --env-file understands: leasehold://path?use for a key with a service, leasehold://path for a value that is retrieved. The file is replaced atomically.',
    'Names become paths: accents are removed, and each run of characters that a path cannot contain becomes one -. Two values with the same path are both skipped and reported.',
    'The exit code is 2 if a value could not be stored or the source failed, and 3 if a value was skipped or its service could not be set.',
  ],
  arguments: [
    { name: 'FILE', help: '.env, .json or .csv file; - for standard input; omit it for Vault', count: 'optional' },
  ],
  flags: FLAGS,
  examples: {
    'leasehold import .env --prefix shop/dev': 'show the plan, then ask; ask before the file is rewritten',
    'leasehold import export.csv --prefix people/ann --dry-run': 'show only the plan',
    'leasehold import --vault-addr https://vault.example.org:8200 --mount kv': 'import a whole mount',
  },
  async run(invocation, flags, file) {
    const prefix = parsePrefix(flags.prefix);
    const address = flags['vault-addr'] ?? (file === null ? vaultVariable(invocation, 'ADDR') : null);
    if ((file === null) === (address === null)) {
      throw new UsageError('give either FILE or --vault-addr URL (VAULT_ADDR, BAO_ADDR)', 'leasehold import --help');
    }
    const { reading, envFile } =
      file === null ? await readVault(invocation, flags, address ?? '') : await readFile(invocation, file, flags);
    if (flags.rewrite && envFile === null) throw new UsageError('--rewrite: needs a .env file that has a name');
    const vault = invocation.connect();
    return runImport(vault, reading, invocation, {
      prefix,
      onlyNew: flags['if-new'],
      compares: flags.compare,
      isDry: flags['dry-run'],
      asks: !flags.yes,
      // An agent sees only the paths that it may list.
      seesAll: mayBeAdministrator(invocation.settings.identity.value),
      envFile,
      rewrites: flags.rewrite,
      origin: file === '-' ? null : (file ?? address),
    });
  },
});

type Flags = FlagValues<typeof FLAGS>;

interface Read {
  readonly reading: ImportSource;
  /** Null unless it is a .env file with a name. */
  readonly envFile: EnvFile | null;
}

async function readFile(invocation: Invocation, file: string, { from, all: readsAll }: Flags): Promise<Read> {
  const name = basename(inputName(file));
  const bytes = await readInput(invocation, file, MAX_SOURCE_MIB);
  const format = from ?? formatOf(bytes, name);
  const reading = await readSource({ bytes, name, format, readsAll });
  if (format !== 'env' || file === '-') return { reading, envFile: null };
  return { reading, envFile: { path: resolve(invocation.terminal.workingDirectory, file), name: file, bytes } };
}

/** BAO_* takes precedence over VAULT_*, as in OpenBao. */
function vaultVariable({ terminal }: Invocation, name: string): string | null {
  return terminal.environment[`BAO_${name}`] || terminal.environment[`VAULT_${name}`] || null;
}

async function readVault(invocation: Invocation, flags: Flags, from: string): Promise<Read> {
  const { Kv2, parseVaultAddress, readKv2 } = await import('../import/kv2.ts');
  const { terminal, signal } = invocation;
  const token = vaultVariable(invocation, 'TOKEN');
  const address = parseVaultAddress(from);
  if (token === null) {
    throw new UsageError('no token for Vault', 'Set VAULT_TOKEN or BAO_TOKEN.');
  }
  const mount = segmentsOf('mount', flags.mount ?? 'secret').join('/');
  const below = segmentsOf('below', flags.below ?? '');
  const kv2 = new Kv2({ address, token: new Secret(token), namespace: vaultVariable(invocation, 'NAMESPACE'), mount });
  using progress = startProgress(terminal, 'Reading');
  return { reading: await readKv2(kv2, { below, signal, progress: progress.show }), envFile: null };
}

/** Splits a path of Vault. @throws UsageError for `.` or `..` */
function segmentsOf(flag: string, text: string): readonly string[] {
  const segments = text.split('/').filter((segment) => segment !== '');
  if (segments.some((segment) => segment === '.' || segment === '..'))
    throw new UsageError(`--${flag}: must not contain . or ..`);
  return segments;
}

const SNIFFED_BYTES = 4096;

/** The signature of a zip file. SOURCE: PKWARE, APPNOTE.TXT, 4.3.7. */
const ZIP_SIGNATURE = Buffer.from('PK\u0003\u0004');

/**
 * `name` is the name of the file. A Bitwarden export begins with its member `encrypted`. @throws UsageError for a zip
 * file
 */
export function formatOf(bytes: Uint8Array, name: string): SourceFormat {
  if (/\.1pux$/i.test(name) || ZIP_SIGNATURE.equals(bytes.subarray(0, ZIP_SIGNATURE.length))) {
    throw new UsageError(
      `${name}: zip files, such as the .1pux of 1Password, are not read`,
      'In 1Password, export as CSV and use --from csv; or write a file with op item get --format json.',
    );
  }
  if (/\.csv$/i.test(name)) return 'csv';
  const beginning = new TextDecoder().decode(bytes.subarray(0, SNIFFED_BYTES)).trimStart();
  if (!beginning.startsWith('{') && !/\.json$/i.test(name)) return 'env';
  return /^\{\s*"encrypted"\s*:\s*(?:true|false)\s*,/.test(beginning) ? 'bitwarden' : 'json';
}

interface Source {
  readonly bytes: Uint8Array;
  readonly name: string;
  readonly format: SourceFormat;
  /** Whether non-secret values of a .env file are read too. */
  readonly readsAll: boolean;
}

/** @throws UsageError when the file is not of the format */
export async function readSource({ bytes, name, format, readsAll }: Source): Promise<ImportSource> {
  if (format === 'env') return readEnv(bytes, name, readsAll);
  const text = decodeUtf8(bytes, name);
  if (format === 'json') return (await import('../import/json.ts')).readJsonFile(text, name);
  const { readBitwarden, readCsv } = await import('../import/password-exports.ts');
  return format === 'csv' ? readCsv(text, name) : readBitwarden(text, name);
}

export const COMMANDS: readonly Command[] = [importCommand];
