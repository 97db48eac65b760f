import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { getPagesQuery } from '../../client/pages.ts';
import { getQuery } from '../../client/queries.ts';
import { getReader } from '../../routing/read-ahead.ts';
import { environmentRoute } from '../../routing/root-route.ts';
import { compact, readOneOf, readText, type SearchInput } from '../../routing/search.ts';
import { INVOICE_FILTERS, type InvoiceListFilter } from './invoice.ts';

/** `month` is that of the start of the period, such as 2026-11; `customer` is an id. */
export type InvoicesSearch = { show?: Exclude<InvoiceListFilter, 'all'>; customer?: string; month?: string };

const FILTERS = INVOICE_FILTERS.filter((filter) => filter !== 'all');

const invoices = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/invoices',
  validateSearch: (input: SearchInput): InvoicesSearch =>
    compact({
      show: readOneOf(input, 'show', FILTERS),
      customer: readText(input, 'customer'),
      month: readText(input, 'month'),
    }),
  component: lazyRouteComponent(() => import('./invoices-page.tsx'), 'InvoicesPage'),
});

/** `why` is the id of a line, or `total`; `event` is the event whose path in the proof is followed; `do` is the open dialogue. */
export type InvoiceSearch = { why?: string; event?: string; do?: InvoiceDialogue };

const DIALOGUES = ['pay', 'void', 'finalize', 'send'] as const;
export type InvoiceDialogue = (typeof DIALOGUES)[number];

const invoice = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/invoices/$invoice_id',
  validateSearch: (input: SearchInput): InvoiceSearch =>
    compact({ why: readText(input, 'why'), event: readText(input, 'event'), do: readOneOf(input, 'do', DIALOGUES) }),
  loader: ({ params: { invoice_id: id }, ...input }) => {
    const reader = getReader(input);
    reader?.read('invoice', (queries) => queries.prefetchQuery(getQuery('/invoices/{id}', { path: { id } })));
    reader?.read('audit_log', (queries) =>
      queries.prefetchInfiniteQuery(getPagesQuery('/audit-logs', { query: { entity_id: id } })),
    );
  },
  component: lazyRouteComponent(() => import('./invoice-page.tsx'), 'InvoicePage'),
});

export const invoicesRoutes = [invoices, invoice] as const;
