/** Reads of a page that begin while its scripts are loaded. */
import type { QueryClient } from '@tanstack/react-query';
import { type CurrentSession, can, sessionQuery } from '../client/session.ts';

type Reader = {
  /** Starts a read if the roles of the user allow it. The page then finds the answer in the cache. */
  readonly read: (resource: string, start: (queries: QueryClient) => Promise<unknown>) => void;
};

/** Returns the reader for the loader of a route; undefined if a link under the pointer only preloads the scripts. */
export function getReader({
  context: { queries },
  preload,
}: {
  context: { queries: QueryClient };
  preload: boolean;
}): Reader | undefined {
  const session = queries.getQueryData<CurrentSession | null>(sessionQuery.queryKey);
  if (preload || !session) return undefined;
  return {
    read: (resource, start) => {
      if (can(session, resource, 'read')) void start(queries);
    },
  };
}
