/** The credentials as a table: all of them, one directory, or the results of a search. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import type { ListedCredential, SearchResults, Tree } from '../../../../src/client/types.ts';
import { DataTable, type TableColumn } from '../../components/data-table.tsx';
import { FilterBar, useFilters } from '../../components/filter-bar.tsx';
import { toRows, usePagedRows } from '../../components/paged-rows.ts';
import { EmptyState, ErrorPanel, Loading } from '../../components/states.tsx';
import { Time } from '../../components/texts.tsx';
import { countText } from '../../components/words.ts';
import { client } from '../../session/console-client.ts';

interface Props {
  /** The directory whose level is shown, `/` for the top level; null for all credentials. */
  readonly prefix: string | null;
  readonly open: string | null;
  readonly onDirectory: (path: string | null) => void;
  readonly onCredential: (path: string) => void;
}

const ROOT = '/';
const LEVEL_ROWS = 1000;
const SEARCH_ROWS = 50;
const MAX_SEARCH_LENGTH = 128;
const SEARCH = { name: 'q', label: 'Search all paths', placeholder: 'a part of a path' } as const;
const TYPE = { name: 'type', label: 'Type', placeholder: 'api_key' } as const;

const ALL_COLUMNS: readonly TableColumn<ListedCredential>[] = [
  { title: 'Path', width: 'minmax(12rem, 3fr)', cell: ({ path }) => <bdi>{path}</bdi> },
  { title: 'Type', width: 'minmax(5rem, 1fr)', cell: ({ type }) => type },
  { title: 'Description', width: 'minmax(8rem, 2fr)', cell: ({ description }) => <bdi>{description}</bdi> },
  { title: 'Updated', width: '11rem', cell: ({ updated_at }) => <Time at={updated_at} /> },
  { title: 'Reads', width: '5rem', cell: ({ access_count }) => access_count.toLocaleString('en') },
];

type Entry = Tree['entries'][number];
const LEVEL_COLUMNS: readonly TableColumn<Entry>[] = [
  {
    title: 'Path',
    width: 'minmax(12rem, 3fr)',
    cell: ({ kind, path }) => <bdi>{kind === 'directory' ? `${path}/` : path}</bdi>,
  },
  {
    title: 'Type',
    width: 'minmax(7rem, 1fr)',
    cell: ({ kind, type, credentials }) =>
      kind === 'credential' ? type : credentials == null ? 'many credentials' : countText(credentials, 'credential'),
  },
  {
    title: 'Updated',
    width: '11rem',
    cell: ({ updated_at }) => (updated_at === undefined ? '' : <Time at={updated_at} />),
  },
];

type Result = SearchResults['results'][number];
const RESULT_COLUMNS: readonly TableColumn<Result>[] = [
  { title: 'Path', width: 'minmax(12rem, 3fr)', cell: ({ name }) => <bdi>{name}</bdi> },
  { title: 'Description', width: 'minmax(8rem, 2fr)', cell: ({ description }) => <bdi>{description}</bdi> },
];

export function CredentialList(props: Props) {
  const { q = '' } = useFilters([SEARCH]);
  const text = q.slice(0, MAX_SEARCH_LENGTH);
  const isAll = text === '' && props.prefix === null;
  return (
    <>
      <FilterBar fields={isAll ? [SEARCH, TYPE] : [SEARCH]} label="Find credentials" />
      {text !== '' && <FoundList text={text} {...props} />}
      {text === '' && props.prefix !== null && <LevelList key={props.prefix} prefix={props.prefix} {...rest(props)} />}
      {isAll && <FullList {...rest(props)} />}
    </>
  );
}

const rest = ({ open, onDirectory, onCredential }: Props) => ({ open, onDirectory, onCredential });

function FullList({ open, onDirectory, onCredential }: Omit<Props, 'prefix'>) {
  const { type } = useFilters([TYPE]);
  const filter = type === undefined ? {} : { type };
  const rows = usePagedRows<ListedCredential>({
    queryKey: ['credentials', filter],
    read: (page, signal) => client.credentials.list({ ...filter, ...page }, { signal }),
  });
  return (
    <>
      {rows.error !== null && <ErrorPanel error={rows.error} onRetry={rows.refetch} />}
      <div className="page-actions">
        <button type="button" className="small" onClick={() => onDirectory(ROOT)}>
          Browse by directory
        </button>
        <span className="count">{rows.isPending ? 'Loading…' : countText(rows.total, 'credential')}</span>
      </div>
      <div className="split">
        <DataTable
          label="Credentials by path"
          columns={ALL_COLUMNS}
          rows={rows}
          keyOf={({ path }) => path}
          openKey={open}
          onOpen={({ path }) => onCredential(path)}
          empty={
            type === undefined ? (
              <EmptyState title="No credentials yet" command="leasehold put demo/first">
                Store the first one with the button above or with this command, which asks for the value.
              </EmptyState>
            ) : (
              <EmptyState title="No credentials of this type">Remove the filter to see all.</EmptyState>
            )
          }
        />
      </div>
    </>
  );
}

function LevelList({ prefix, open, onDirectory, onCredential }: Props & { readonly prefix: string }) {
  const { data, error, isPending, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = useInfiniteQuery({
    queryKey: ['tree', 'list', prefix],
    initialPageParam: '',
    queryFn: ({ signal, pageParam: after }) =>
      client.overview.tree(
        { limit: LEVEL_ROWS, ...(prefix === ROOT ? {} : { prefix }), ...(after === '' ? {} : { after }) },
        { signal },
      ),
    getNextPageParam: ({ next }) => next,
  });
  if (error !== null) return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  if (isPending) return <Loading what={prefix} />;
  const entries = data.pages.flatMap((page) => page.entries);
  const up = prefix === ROOT ? null : prefix.slice(0, Math.max(0, prefix.lastIndexOf('/'))) || ROOT;
  const place = prefix === ROOT ? ROOT : `${prefix}/`;
  return (
    <>
      <div className="page-actions">
        <button type="button" className="small" onClick={() => onDirectory(up)}>
          {up === null ? 'Show all credentials' : 'Up one level'}
        </button>
        <span className="count">
          <bdi>{place}</bdi>
          {`: ${entries.length.toLocaleString('en')}${hasNextPage ? ' of more' : ''} names`}
        </span>
        {hasNextPage && (
          <button type="button" className="small" disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Show more
          </button>
        )}
      </div>
      <div className="split">
        <DataTable
          label={`Names below ${place}`}
          columns={LEVEL_COLUMNS}
          rows={toRows(entries)}
          keyOf={({ kind, path }) => `${kind}:${path}`}
          openKey={open === null ? null : `credential:${open}`}
          onOpen={({ kind, path }) => (kind === 'directory' ? onDirectory(path) : onCredential(path))}
          empty={<EmptyState title="No credentials below this path">Choose another directory.</EmptyState>}
        />
      </div>
    </>
  );
}

function FoundList({ text, open, onCredential }: Props & { readonly text: string }) {
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['search', text],
    queryFn: ({ signal }) => client.overview.search({ q: text, limit: SEARCH_ROWS }, { signal }),
  });
  if (error !== null) return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  if (isPending) return <Loading what="the results" />;
  const found = data.results.filter(({ kind }) => kind === 'credential');
  const isTruncated = !data.complete || data.results.length === SEARCH_ROWS;
  return (
    <>
      <p className="count">
        {`${countText(found.length, 'credential')} found${isTruncated ? '; more may exist: type more of the path' : ''}`}
      </p>
      <div className="split">
        <DataTable
          label="Matching credentials"
          columns={RESULT_COLUMNS}
          rows={toRows(found)}
          keyOf={({ name }) => name}
          openKey={open}
          onOpen={({ name }) => onCredential(name)}
          empty={<EmptyState title="No matching paths">Try a shorter part of the path.</EmptyState>}
        />
      </div>
    </>
  );
}
