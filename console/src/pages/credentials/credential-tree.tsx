/**
 * The tree of paths, read level by level when a directory is expanded. As the ARIA pattern has it: arrows move, expand
 * and collapse; Home and End; a letter finds the next name; Enter and Space select.
 */
import { useInfiniteQuery } from '@tanstack/react-query';
import { createContext, type KeyboardEvent, useContext, useState } from 'react';
import type { Tree } from '../../../../src/client/types.ts';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { Loading } from '../../components/loading.tsx';
import { client } from '../../session/console-client.ts';

interface Props {
  /** The selected directory; null for none. */
  readonly prefix: string | null;
  /** The selected credential; null for none. */
  readonly open: string | null;
  readonly onDirectory: (path: string | null) => void;
  readonly onCredential: (path: string) => void;
}

interface TreeState extends Props {
  readonly expanded: ReadonlySet<string>;
  /** The key of the item that Tab reaches; null for the first. */
  readonly current: string | null;
  setExpanded(path: string, isExpanded: boolean): void;
}

type Entry = Tree['entries'][number];
const LEVEL_ROWS = 100;
const ROOT_KEY = 'directory:';
const TreeContext = createContext<TreeState | null>(null);
const keyOf = ({ kind, path }: Pick<Entry, 'kind' | 'path'>): string => `${kind}:${path}`;

/** The directories above a path: `a` and `a/b` of `a/b/c`. */
const ancestorsOf = (path: string): string[] =>
  path.split('/').flatMap((_, index, segments) => (index === 0 ? [] : [segments.slice(0, index).join('/')]));

export function CredentialTree(props: Props) {
  const { prefix, open } = props;
  const [expanded, setAll] = useState<ReadonlySet<string>>(
    () =>
      new Set([
        ...(prefix === null ? [] : [...ancestorsOf(prefix), prefix]),
        ...(open === null ? [] : ancestorsOf(open)),
      ]),
  );
  const [current, setCurrent] = useState<string | null>(null);
  const setExpanded = (path: string, isExpanded: boolean): void => {
    const next = new Set(expanded);
    if (isExpanded) next.add(path);
    else next.delete(path);
    setAll(next);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    const { currentTarget, target } = event;
    if (!(target instanceof HTMLElement) || event.ctrlKey || event.metaKey || event.altKey) return;
    const items = [...currentTarget.querySelectorAll<HTMLElement>('[role="treeitem"][data-key]')];
    const index = items.indexOf(target);
    // A button of an error has separate keys.
    if (index < 0 && target !== currentTarget) return;
    const next = targetOf(event.key, items, index);
    if (next === 'expand' || next === 'collapse') setExpanded(target.dataset['path'] ?? '', next === 'expand');
    else if (next === 'select') target.querySelector<HTMLElement>(':scope > .tree-label')?.click();
    else if (next instanceof HTMLElement) next.focus();
    else return;
    event.preventDefault();
  };
  return (
    <TreeContext value={{ ...props, expanded, current: current ?? ROOT_KEY, setExpanded }}>
      <div
        className="tree"
        role="tree"
        aria-label="Tree of credentials"
        tabIndex={-1}
        onKeyDown={onKeyDown}
        onFocus={({ target }) => target.dataset['key'] !== undefined && setCurrent(target.dataset['key'])}
      >
        <div
          role="treeitem"
          aria-level={1}
          aria-selected={prefix === null}
          {...itemOf(ROOT_KEY, '', current ?? ROOT_KEY)}
        >
          <Label onSelect={() => props.onDirectory(null)}>all credentials</Label>
        </div>
        <Level prefix="" level={1} />
      </div>
    </TreeContext>
  );
}

type Move = HTMLElement | 'expand' | 'collapse' | 'select' | null;

/** What a key does on an item, by the state that the item itself shows. */
function targetOf(key: string, items: readonly HTMLElement[], index: number): Move {
  const item = items[index];
  const isExpanded = item?.ariaExpanded;
  if (key === 'ArrowDown') return items[index + 1] ?? null;
  if (key === 'ArrowUp') return items[index - 1] ?? null;
  if (key === 'Home') return items[0] ?? null;
  if (key === 'End') return items.at(-1) ?? null;
  if (key === 'Enter' || key === ' ') return 'select';
  if (key === 'ArrowRight')
    return isExpanded === 'false' ? 'expand' : isExpanded === 'true' ? (items[index + 1] ?? null) : null;
  if (key === 'ArrowLeft') {
    if (isExpanded === 'true') return 'collapse';
    return item?.parentElement?.closest<HTMLElement>('[role="treeitem"]') ?? null;
  }
  if (key.length !== 1) return null;
  const after = [...items.slice(index + 1), ...items.slice(0, index)];
  return after.find((each) => each.dataset['name']?.toLowerCase().startsWith(key.toLowerCase())) ?? null;
}

function itemOf(key: string, path: string, current: string | null) {
  return { 'data-key': key, 'data-path': path, tabIndex: key === current ? 0 : -1 };
}

interface LevelProps {
  readonly prefix: string;
  /** From 1. */
  readonly level: number;
}

function Level({ prefix, level }: LevelProps) {
  const tree = useContext(TreeContext);
  const { data, error, isPending, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery({
    queryKey: ['tree', prefix],
    initialPageParam: '',
    queryFn: ({ signal, pageParam: after }) =>
      client.overview.tree(
        { limit: LEVEL_ROWS, ...(prefix === '' ? {} : { prefix }), ...(after === '' ? {} : { after }) },
        { signal },
      ),
    getNextPageParam: ({ next }) => next,
  });
  if (tree === null) return null;
  if (error !== null || isPending) {
    const what = prefix === '' ? 'the tree' : prefix;
    // WHY an item, which no key reaches: a tree may contain nothing else. WHY a label: the text appears after a moment.
    return (
      <div
        role="treeitem"
        aria-level={level}
        aria-selected={false}
        aria-busy={isPending}
        aria-label={isPending ? `Loading ${what}` : undefined}
        tabIndex={-1}
      >
        {isPending ? <Loading what={what} /> : <ErrorPanel error={error} onRetry={() => void refetch()} />}
      </div>
    );
  }
  const entries = data.pages.flatMap((page) => page.entries);
  const moreKey = `more:${prefix}`;
  return (
    <>
      {entries.map((entry) => (
        <Item key={keyOf(entry)} entry={entry} level={level} tree={tree} />
      ))}
      {hasNextPage && (
        <div role="treeitem" aria-level={level} aria-selected={false} {...itemOf(moreKey, prefix, tree.current)}>
          <Label
            onSelect={() => void fetchNextPage()}
          >{`more below ${prefix === '' ? 'the first level' : prefix} …`}</Label>
        </div>
      )}
    </>
  );
}

interface ItemProps {
  readonly entry: Entry;
  readonly level: number;
  readonly tree: TreeState;
}

function Item({ entry, level, tree }: ItemProps) {
  const { kind, path, name, credentials } = entry;
  const isDirectory = kind === 'directory';
  const isExpanded = isDirectory && tree.expanded.has(path);
  const isSelected = isDirectory ? tree.prefix === path : tree.open === path;
  const select = (): void => {
    if (isDirectory) {
      tree.setExpanded(path, !isExpanded || tree.prefix !== path);
      tree.onDirectory(path);
    } else tree.onCredential(path);
  };
  const count = credentials === null ? 'many' : credentials?.toLocaleString('en');
  return (
    <div
      role="treeitem"
      aria-level={level}
      aria-expanded={isDirectory ? isExpanded : undefined}
      aria-selected={isSelected}
      data-name={name}
      {...itemOf(keyOf(entry), path, tree.current)}
    >
      <Label onSelect={select} isExpanded={isDirectory ? isExpanded : null} count={isDirectory ? count : undefined}>
        {name}
      </Label>
      {isExpanded && (
        <div role="group" className="tree-group">
          <Level prefix={path} level={level + 1} />
        </div>
      )}
    </div>
  );
}

interface LabelProps {
  readonly children: string;
  /** Null for what is not a directory. */
  readonly isExpanded?: boolean | null;
  readonly count?: string | undefined;
  readonly onSelect: () => void;
}

/** The pointer's part of an item, whose keys the tree handles. */
function Label({ children, isExpanded = null, count, onSelect }: LabelProps) {
  return (
    <div className="tree-label" role="none" title={children} onClick={onSelect}>
      <span aria-hidden>{isExpanded === null ? '·' : isExpanded ? '−' : '+'}</span>
      <bdi>{children}</bdi>
      {count !== undefined && <span className="count">{count}</span>}
    </div>
  );
}
