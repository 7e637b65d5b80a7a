/** The command palette: pages and search results, found by typing. Arrows select, Enter opens. */
import { useQuery } from '@tanstack/react-query';
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import type { SearchResults } from '../../../src/client/types.ts';
import { ErrorPanel } from '../components/states.tsx';
import { PAGES } from '../pages.ts';
import { client } from '../session/console-client.ts';

interface Command {
  readonly key: string;
  readonly title: string;
  readonly description: string;
  run(): void;
}

interface Props {
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

const MIN_SEARCH_LENGTH = 2;

export function CommandPalette({ isOpen, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (isOpen) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen]);
  return (
    <dialog ref={dialog} className="palette" aria-label="Search" onClose={onClose}>
      {/* Closing returns the focus, so it comes before the command, which moves the focus to a new heading. */}
      {isOpen && <PaletteContent onClose={() => dialog.current?.close()} />}
    </dialog>
  );
}

function PaletteContent({ onClose }: Pick<Props, 'onClose'>) {
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const listId = useId();
  const { commands, isSearching, error, retry } = useCommands(text.trim());
  const current = Math.min(chosen, commands.length - 1);
  useEffect(() => {
    list.current?.children[current]?.scrollIntoView({ block: 'nearest' });
  }, [current]);
  const run = (command: Command | undefined): void => {
    if (command === undefined) return;
    onClose();
    command.run();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setChosen((current + step + commands.length) % Math.max(1, commands.length));
    else if (event.key === 'Enter') run(commands[current]);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <input
        type="search"
        role="combobox"
        aria-label="Search pages, credentials, agents, policies and operators"
        aria-expanded="true"
        aria-controls={listId}
        aria-activedescendant={commands.length === 0 ? undefined : `${listId}-${current}`}
        autoComplete="off"
        spellCheck={false}
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          setChosen(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div ref={list} id={listId} role="listbox" aria-label="Results" className="palette-list">
        {commands.map((command, index) => (
          // The combobox above handles every key; the pointer is a second way to choose the same commands.
          <div
            key={command.key}
            id={`${listId}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === current}
            // The focus stays in the combobox.
            onMouseDown={(event) => event.preventDefault()}
            onPointerUp={({ button }) => button === 0 && run(command)}
          >
            <span>{command.title}</span> <small>{command.description}</small>
          </div>
        ))}
      </div>
      {error !== null && <ErrorPanel error={error} onRetry={retry} />}
      <p className="palette-count" role="status">
        {describeFound(commands.length, isSearching, error !== null)}
      </p>
    </>
  );
}

function describeFound(count: number, isSearching: boolean, hasFailed: boolean): string {
  if (isSearching) return 'Searching…';
  if (hasFailed) return `${count} found; the vault could not be searched`;
  return count === 0 ? 'No results' : `${count} found`;
}

interface Found {
  readonly commands: readonly Command[];
  readonly isSearching: boolean;
  readonly error: unknown;
  retry(): void;
}

function useCommands(query: string): Found {
  const [, navigate] = useLocation();
  const {
    data: found = [],
    error,
    isFetching,
    refetch,
  } = useQuery({
    queryKey: ['search', query],
    queryFn: ({ signal }) => search(query, signal),
    enabled: query.length >= MIN_SEARCH_LENGTH,
  });
  const pages = PAGES.map(({ path, title, description }) => ({
    key: path,
    title,
    description,
    run: () => navigate(path),
  }));
  const wanted = query.toLowerCase();
  const isNamed = ({ title }: { readonly title: string }): boolean => title.toLowerCase().startsWith(wanted);
  const matching = pages
    .filter(({ title, description }) => `${title} ${description}`.toLowerCase().includes(wanted))
    .sort((a, b) => Number(isNamed(b)) - Number(isNamed(a)));
  const results = found.map(({ kind, name, description, href }) => ({
    key: `${kind}:${name}`,
    title: name,
    description: description === '' ? kind : `${kind}: ${description}`,
    run: () => navigate(href),
  }));
  return { commands: [...matching, ...results], isSearching: isFetching, error, retry: () => void refetch() };
}

type SearchResult = SearchResults['results'][number];

const LIMIT = 20;
/** The page of each kind, and the parameter that selects the row. */
const PAGE_OF: Readonly<Record<SearchResult['kind'], string>> = {
  credential: '/credentials?path=',
  agent: '/agents?agent=',
  policy: '/access?policy=',
  operator: '/settings?operator=',
};

async function search(q: string, signal: AbortSignal): Promise<readonly (SearchResult & { readonly href: string })[]> {
  const { results } = await client.overview.search({ q, limit: LIMIT }, { signal });
  return results.map((found) => ({ ...found, href: PAGE_OF[found.kind] + encodeURIComponent(found.name) }));
}
