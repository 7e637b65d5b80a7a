/** Parses the parts of the Containerfile that its tests need: one instruction per line, continued by a backslash. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from './source.ts';

const TREE = '/opt/leasehold';

export interface Containerfile {
  /** The base images of its stages. */
  readonly images: readonly string[];
  /** Each source in the checkout, and its destination below the image's directory. */
  readonly copied: readonly { readonly from: string; readonly to: string }[];
  readonly entrypoint: readonly string[];
  readonly health: readonly string[];
  readonly user: string;
}

export function readContainerfile(): Containerfile {
  const text = readFileSync(path.join(ROOT, 'deploy/Containerfile'), 'utf8');
  const instructions = text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n/g, '')
    .split('\n')
    .map((line) => /^([A-Z]+) (.*)$/.exec(line))
    .flatMap((match) => (match === null ? [] : [{ name: match[1] ?? '', rest: match[2] ?? '' }]));
  const all = (name: string) => instructions.filter((instruction) => instruction.name === name).map(({ rest }) => rest);
  const last = (name: string): string => all(name).at(-1) ?? '';
  const copied = all('COPY')
    .filter((rest) => !rest.startsWith('--from='))
    .flatMap((rest) => {
      const names = rest.split(' ');
      const to = names.pop() ?? '';
      return names.map((from) => ({ from, to: /\/$/.test(to) ? path.join(to, path.basename(from)) : to }));
    });
  return {
    images: all('FROM').map((rest) => rest.split(' ')[0] ?? ''),
    copied,
    entrypoint: JSON.parse(last('ENTRYPOINT')),
    health: JSON.parse(last('HEALTHCHECK').replace(/^.*CMD /, '')),
    user: last('USER'),
  };
}

/** A command of the image, for a copy of its tree elsewhere and the Node of this process. */
export function outsideOfImage(command: readonly string[], tree: string): string[] {
  return command.map((word) => (word === 'node' ? process.execPath : word.replace(TREE, tree)));
}
