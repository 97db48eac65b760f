import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { getPagesQuery } from '../../client/pages.ts';
import { getReader } from '../../routing/read-ahead.ts';
import { environmentRoute } from '../../routing/root-route.ts';
import { compact, readOneOf, readText, type SearchInput } from '../../routing/search.ts';
import { getListParams } from './queries.ts';

/** `q` is the text that the list is searched for; `view` shows archived customers; `sheet` is the sheet that is open. */
export type CustomersSearch = { q?: string; view?: 'archived'; sheet?: 'new' };

const customers = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/customers',
  validateSearch: (input: SearchInput): CustomersSearch =>
    compact({
      q: readText(input, 'q'),
      view: readOneOf(input, 'view', ['archived']),
      sheet: readOneOf(input, 'sheet', ['new']),
    }),
  loaderDeps: ({ search: { q, view } }) => ({ q, view }),
  loader: ({ deps: { q, view }, ...input }) => {
    if (q === undefined)
      getReader(input)?.read('customer', (queries) =>
        queries.prefetchInfiniteQuery(getPagesQuery('/customers', getListParams(view))),
      );
  },
  component: lazyRouteComponent(() => import('./customers-page.tsx'), 'CustomersPage'),
});

const CUSTOMER_SHEETS = ['edit', 'record'] as const;
/** `why` is a line of a next invoice, or the id of its subscription for the total; `do` is the open dialogue. */
export type CustomerSearch = { sheet?: (typeof CUSTOMER_SHEETS)[number]; why?: string; do?: 'archive' };

const customer = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/customers/$customer_id',
  validateSearch: (input: SearchInput): CustomerSearch =>
    compact({
      sheet: readOneOf(input, 'sheet', CUSTOMER_SHEETS),
      why: readText(input, 'why'),
      do: readOneOf(input, 'do', ['archive']),
    }),
  component: lazyRouteComponent(() => import('./customer-page.tsx'), 'CustomerPage'),
});

export const customersRoutes = [customers, customer] as const;
