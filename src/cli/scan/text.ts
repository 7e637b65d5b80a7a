/** Key-shaped strings of a text, and what looks random and is assigned to a name that says that it is a secret. */
import { isHarmlessName, isSecretName } from '../../masking/secret-names.ts';
import { ALLOWANCE, type Finding } from './finding.ts';
import { isPlaceholder, isRandom } from './placeholder.ts';
import { RULES, type Rule } from './rules.ts';

interface Match {
  readonly from: number;
  readonly to: number;
  readonly rule: string;
  readonly name: string | null;
  readonly hint: string;
}

/** In order of their lines. */
export function findInText(text: string, file: string): readonly Finding[] {
  const matches = [...RULES.flatMap((rule) => matchesOf(text, rule)), ...assignedIn(text, file)];
  const found: Finding[] = [];
  let [end, line, at] = [0, 1, 0];
  for (const match of matches.sort((one, other) => one.from - other.from || other.to - one.to)) {
    // A JWT in a URL with a password is one secret.
    if (match.from < end) continue;
    end = match.to;
    for (; at < match.from; at++) if (text.charCodeAt(at) === NEWLINE) line += 1;
    if (!lineAround(text, match.from).includes(ALLOWANCE)) {
      found.push({ file, line, rule: match.rule, name: match.name, hint: match.hint });
    }
  }
  return found;
}

/** The hint of the first rule that the text breaks, with its name; null where there is none. */
export function findShape(text: string): { readonly rule: string; readonly hint: string } | null {
  for (const rule of RULES) {
    const [match] = matchesOf(text, rule);
    if (match !== undefined) return match;
  }
  return null;
}

function matchesOf(text: string, { name, keyword, pattern, shown, secretGroup = 0 }: Rule): Match[] {
  if (!text.includes(keyword)) return [];
  return [...text.matchAll(pattern)].flatMap((match) =>
    isPlaceholder(match[secretGroup] ?? '')
      ? []
      : [
          {
            from: match.index,
            to: match.index + match[0].length,
            rule: name,
            name: null,
            hint: `${match[0].slice(0, shown)}…`,
          },
        ],
  );
}

const NEWLINE = 10;
const LONGEST_LINE = 1000;

function lineAround(text: string, at: number): string {
  const before = text.slice(Math.max(0, at - LONGEST_LINE), at);
  const after = text.slice(at, at + LONGEST_LINE);
  const end = after.indexOf('\n');
  return before.slice(before.lastIndexOf('\n') + 1) + (end === -1 ? after : after.slice(0, end));
}

/** Kinds of files where a value needs no quotes. In a program a word without quotes is a variable. */
const PLAIN =
  /\.(?:env|ini|cfg|conf|config|properties|toml|ya?ml|tfvars|sh|bash|zsh|npmrc|pypirc|netrc)$|(?:^|\/)(?:\.npmrc|\.pypirc|\.netrc|Dockerfile|credentials)$|(?:^|\/)\.env\b/i;
const LONGEST_NAME = 80;
const LONGEST_VALUE = 256;
const NAME_BEFORE = /([A-Za-z_][\w.-]*)["']?\s{0,8}$/;
const QUOTED_AFTER = /^[=>]?\s{0,8}(["'`])([^\s"'`\\]+)\1/;
const PLAIN_AFTER = /^\s{0,8}([^\s"'`#;,(){}[\]]+)\s*(?:$|[\r\n#;,])/;
/** Names that are the end of many that are no secrets. */
const NO_SECRETS =
  /^(?:keys?|auth|cookie)$|public|(?:_|[a-z])(?:id|name|url|uri|file|path|type|ttl|hash|digest|fingerprint)$/i;

/** WHY not a pattern over all of it: names and values of one text could overlap in too many ways. From each sign a few characters are seen. */
function* assignedIn(text: string, file: string): Generator<Match> {
  const isPlain = PLAIN.test(file);
  for (const { index } of text.matchAll(/[=:]/g)) {
    const name = NAME_BEFORE.exec(text.slice(Math.max(0, index - LONGEST_NAME), index))?.[1];
    if (name === undefined || NO_SECRETS.test(name) || isHarmlessName(name) || !isSecretName(name)) continue;
    const after = text.slice(index + 1, index + 1 + LONGEST_VALUE);
    const quoted = QUOTED_AFTER.exec(after);
    const value = quoted?.[2] ?? (isPlain ? PLAIN_AFTER.exec(after)?.[1] : undefined);
    if (value === undefined || isPlaceholder(value) || !isRandom(value) || isAddress(value)) continue;
    const from = index + 1 + after.indexOf(value);
    yield { from, to: from + value.length, rule: 'secret-assigned', name, hint: '…' };
  }
}

/** A link or a file, where what is secret is behind it. One with a password has a rule of its own. */
export function isAddress(value: string): boolean {
  return /^(?:https?:\/\/|\.{0,2}\/|~\/|leasehold:)/i.test(value);
}
