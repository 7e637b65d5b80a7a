/** Where checkpoints are kept in addition to the database and the data directory, from the service's flags. */
import { parseWitnessKey, type Witness } from '../crypto/cosignature.ts';
import { UsageError } from '../platform/errors.ts';
import { parseFilePath, parseHttpUrl, splitScheme } from './receiver-address.ts';

export type AnchorOption =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'stdout' }
  | { readonly kind: 'webhook'; readonly url: URL }
  | { readonly kind: 'witness'; readonly url: URL; readonly witness: Witness };

const FLAG = { name: '--anchor', forms: 'file:/PATH, stdout:, webhook+https://… or witness+https://…#KEY' };

/** @throws UsageError */
export function parseAnchors(items: readonly string[]): AnchorOption[] {
  return items.map((item): AnchorOption => {
    const [scheme, rest] = splitScheme(item);
    switch (scheme) {
      case 'file':
        return { kind: 'file', path: parseFilePath(FLAG, rest) };
      case 'stdout':
        return { kind: 'stdout' };
      case 'webhook+https':
      case 'webhook+http':
        return { kind: 'webhook', url: parseHttpUrl(FLAG, item.slice('webhook+'.length)) };
      case 'witness+https':
      case 'witness+http':
        return parseWitness(parseHttpUrl(FLAG, item.slice('witness+'.length)));
      default:
        throw new UsageError(`--anchor must be ${FLAG.forms}; several are separated by commas.`);
    }
  });
}

/** The fragment is the witness's public key. */
function parseWitness(url: URL): AnchorOption {
  const witness = parseWitnessKey(decodeFragment(url.hash.slice(1)));
  if (witness === null) {
    throw new UsageError('--anchor: a witness needs its key after #, as in witness+https://HOST/#NAME+ID+BASE64.');
  }
  const submit = new URL(url);
  submit.hash = '';
  submit.pathname = `${submit.pathname.replace(/\/$/, '')}/add-checkpoint`;
  return { kind: 'witness', url: submit, witness };
}

/** The text itself if its escapes are invalid. */
function decodeFragment(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
