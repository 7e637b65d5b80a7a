/** `leasehold completion`: prints a script that completes the commands and flags of the table. */
import { CLIENT_FLAGS } from '../../flags/client-flags.ts';
import type { Flags } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { type Command, defineCommand, type Entry, flagsOf } from '../command.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

interface Position {
  readonly name: string;
  readonly words: readonly { readonly word: string; readonly summary: string }[];
  readonly flags: readonly { readonly name: string; readonly help: string }[];
}

export const completionOf = (entries: () => readonly Entry[]): Command =>
  defineCommand({
    name: 'completion',
    about: ['The script completes commands, flags and files. It starts no program and reads nothing from the vault.'],
    arguments: [{ name: 'SHELL', help: SHELLS.join(', '), count: 'one' }],
    examples: {
      'source <(leasehold completion bash)': 'for bash: add to ~/.bashrc',
      'source <(leasehold completion zsh)': 'for zsh: add to ~/.zshrc, after compinit',
      'leasehold completion fish | source': 'for fish: add to ~/.config/fish/config.fish',
    },
    isLocal: true,
    async run({ output }, _flags, given) {
      const shell = SHELLS.find((known) => known === given);
      if (shell === undefined) throw new UsageError(`SHELL: must be one of ${SHELLS.join(', ')}`);
      const positions = await readPositions(entries());
      output.text(shell === 'fish' ? fishScript(positions) : bashScript(positions, shell === 'zsh'));
    },
  });

async function readPositions(entries: readonly Entry[]): Promise<Position[]> {
  const commands = new Map<string, Command>();
  for (const { name, load } of entries) commands.set(name, await load());
  const names = new Set(entries.flatMap(({ name }) => name.split(' ').map((_, at, all) => all.slice(0, at).join(' '))));
  return [...names.union(commands)].map((name) => {
    const command = commands.get(name);
    // The client's flags may precede the name of a subcommand.
    const parentFlags: Flags = name === '' ? CLIENT_FLAGS : {};
    const flags = command === undefined || command.takesAllWords === true ? parentFlags : flagsOf(command);
    return {
      name,
      words: wordsAfter(name, entries),
      flags: Object.entries(flags).map(([flag, { help }]) => ({ name: flag, help })),
    };
  });
}

function wordsAfter(name: string, entries: readonly Entry[]): Position['words'] {
  if (name === 'completion') return SHELLS.map((word) => ({ word, summary: '' }));
  const before = name === '' ? '' : `${name} `;
  const words = new Map<string, string>();
  for (const { name: each, summary } of entries) {
    const [word = '', ...more] = each.startsWith(before) ? each.slice(before.length).split(' ') : [];
    if (word !== '' && !words.has(word)) words.set(word, more.length === 0 ? summary : '');
  }
  return [...words].map(([word, summary]) => ({ word, summary }));
}

/** WHY slices instead of indices: zsh counts from 1. */
function bashScript(positions: readonly Position[], isZsh: boolean): string {
  const known = positions.filter(({ name }) => name !== '').map(({ name }) => `'${name}'`);
  return [
    ...(isZsh ? ['autoload -U +X bashcompinit && bashcompinit'] : []),
    '_leasehold() {',
    `  local name= word="\${COMP_WORDS[*]:$COMP_CWORD:1}" words= flags= each`,
    `  for each in "\${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do`,
    `    case "\${name:+$name }$each" in`,
    `      ${known.join('|')}) name="\${name:+$name }$each" ;;`,
    "      --|*' --') name=-- ;;",
    '    esac',
    '  done',
    '  case "$name" in',
    ...positions.map(
      ({ name, words, flags }) =>
        `    '${name}') words='${words.map(({ word }) => word).join(' ')}' flags='${flags.map((flag) => `--${flag.name}`).join(' ')}' ;;`,
    ),
    '  esac',
    '  case "$word" in -*) words="$flags" ;; esac',
    '  COMPREPLY=($(compgen -W "$words" -- "$word"))',
    '}',
    'complete -o bashdefault -o default -F _leasehold leasehold',
  ].join('\n');
}

function fishScript(positions: readonly Position[]): string {
  const known = positions.filter(({ name }) => name !== '').map(({ name }) => `'${name}'`);
  const quote = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  return [
    'function __leasehold_at',
    '  set -l name',
    '  for each in (commandline -opc)[2..-1]',
    '    set -l next (string trim -- "$name $each")',
    `    contains -- $next ${known.join(' ')}; and set name $next`,
    '  end',
    '  test "$name" = "$argv[1]"',
    'end',
    ...positions.flatMap(({ name, words, flags }) => {
      const at = `complete -c leasehold -n "__leasehold_at '${name}'"`;
      return [
        ...words.map(({ word, summary }) => `${at} -f -a ${word} -d ${quote(summary)}`),
        ...flags.map((flag) => `${at} -l ${flag.name} -d ${quote(flag.help)}`),
      ];
    }),
  ].join('\n');
}
