/** Lists that come in pages with a cursor: further pages are loaded while the reader scrolls. */
import { type InfiniteData, infiniteQueryOptions, useInfiniteQuery } from '@tanstack/react-query';
import { api, readData } from './client.ts';
import type { GetData, GetParams, GetPath } from './queries.ts';

type ListAnswer = { items?: unknown[]; pagination?: { total?: number | null; next_cursor?: string | null } };
type ListedRow<Path extends GetPath> = GetData<Path> extends { items?: (infer Item)[] } ? Item : never;

const PAGE_ROWS = 50;

export type ListOfPages<Item> = {
  readonly rows: readonly Item[];
  readonly total: number;
  readonly isPending: boolean;
  readonly error: Error | null;
  readonly loadMore: () => void;
  readonly refetch: () => void;
};

/** Query options of a list in pages. */
export function getPagesQuery<Path extends GetPath>(path: Path, params: GetParams<Path> = {} as GetParams<Path>) {
  const query = (params as { query?: object }).query ?? {};
  return infiniteQueryOptions({
    queryKey: [path, 'pages', params] as const,
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) =>
      readData(
        (api.GET as (path: string, init: object) => Promise<{ data?: ListAnswer }>)(path, {
          params: { ...params, query: { limit: PAGE_ROWS, ...query, ...(pageParam ? { cursor: pageParam } : {}) } },
          signal,
        }),
      ),
    getNextPageParam: ({ pagination }) => pagination?.next_cursor ?? null,
  });
}

export function usePages<Path extends GetPath>(
  path: Path,
  params: GetParams<Path> = {} as GetParams<Path>,
  options: { enabled?: boolean } = {},
): ListOfPages<ListedRow<Path>> {
  const list = useInfiniteQuery({ ...getPagesQuery(path, params), ...options });
  const pages = (list.data as InfiniteData<ListAnswer> | undefined)?.pages ?? [];
  const rows = pages.flatMap(({ items = [] }) => items) as ListedRow<Path>[];
  return {
    rows,
    total: pages[0]?.pagination?.total ?? rows.length,
    isPending: list.isPending,
    error: list.error,
    loadMore: () => {
      if (list.hasNextPage && !list.isFetchingNextPage) void list.fetchNextPage();
    },
    refetch: () => void list.refetch(),
  };
}
