/** Reads through TanStack Query: the key of a query is its path with its parameters, so that a change can invalidate what it touches. */
import { type QueryClient, queryOptions, type UseQueryResult, useQuery } from '@tanstack/react-query';
import type { FetchResponse, ParseAsResponse } from 'openapi-fetch';
import { api, readData } from './client.ts';
import type { paths } from './openapi.d.ts';

export type GetPath = { [Path in keyof paths]: paths[Path] extends { get: object } ? Path : never }[keyof paths];
type GetOperation<Path extends GetPath> = paths[Path] extends { get: infer Operation extends object }
  ? Operation
  : never;
/** Path and query parameters of an operation. */
export type GetParams<Path extends GetPath> =
  GetOperation<Path> extends { parameters: infer Parameters }
    ? {
        path?: Parameters extends { path: infer InPath } ? InPath : never;
        query?: Parameters extends { query?: infer InQuery } ? InQuery : never;
      }
    : Record<string, never>;
export type GetData<Path extends GetPath> =
  FetchResponse<GetOperation<Path> & Record<string | number, unknown>, object, 'application/json'> extends {
    data?: infer Data;
  }
    ? NonNullable<Data>
    : ParseAsResponse<never, object>;

/** Query options of a GET: `useQuery(getQuery('/customers/{id}', { path: { id } }))`. */
export function getQuery<Path extends GetPath>(path: Path, params: GetParams<Path> = {} as GetParams<Path>) {
  return queryOptions({
    queryKey: [path, params] as const,
    queryFn: ({ signal }) =>
      readData(
        (api.GET as (path: string, init: object) => Promise<{ data?: GetData<Path> }>)(path, { params, signal }),
      ),
  });
}

export function useGet<Path extends GetPath>(
  path: Path,
  params?: GetParams<Path>,
  options: { enabled?: boolean; refetchInterval?: number | false } = {},
): UseQueryResult<GetData<Path>> {
  return useQuery({ ...getQuery(path, params), ...options }) as UseQueryResult<GetData<Path>>;
}

/** Query options of a question that is sent by POST, such as a search or a preview. `key` names its path and `ask` sends it. */
export function postQuery<Data>(key: string, body: unknown, ask: () => Promise<{ data?: Data }>) {
  return queryOptions({ queryKey: [key, body] as const, queryFn: () => readData(ask()) });
}

/** Marks the queries of the given paths as stale; those on the page are read again. */
export async function invalidate(queries: QueryClient, ...paths: string[]): Promise<void> {
  await queries.invalidateQueries({
    predicate: ({ queryKey: [path] }) => typeof path === 'string' && paths.some((prefix) => path.startsWith(prefix)),
  });
}
