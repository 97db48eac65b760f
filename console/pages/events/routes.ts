import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { isDay } from '../../components/range.ts';
import { getReader } from '../../routing/read-ahead.ts';
import { environmentRoute } from '../../routing/root-route.ts';
import { compact, readOneOf, readText, type SearchInput } from '../../routing/search.ts';
import { buildEventsQuery } from './event-queries.ts';
import { buildEventFilters } from './event-rows.ts';
import {
  CORRECTION_FILTERS,
  EVENT_DIALOGUES,
  EVENT_TABS,
  type EventsSearch,
  UNCOUNTED_REASONS,
} from './event-search.ts';

const events = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/events',
  validateSearch: (input: SearchInput): EventsSearch => {
    const [from, to] = [readText(input, 'from'), readText(input, 'to')];
    return compact({
      tab: readOneOf(input, 'tab', EVENT_TABS),
      reason: readOneOf(input, 'reason', UNCOUNTED_REASONS),
      action: readOneOf(input, 'action', CORRECTION_FILTERS),
      customer: readText(input, 'customer'),
      name: readText(input, 'name'),
      property: readText(input, 'property'),
      ...(isDay(from) && isDay(to) && from < to ? { from, to } : {}),
      event: readText(input, 'event'),
      do: readOneOf(input, 'do', EVENT_DIALOGUES),
      letter: readText(input, 'letter'),
    });
  },
  loaderDeps: ({ search: { tab, customer, name, property, from, to } }) => ({
    tab,
    customer,
    name,
    property,
    from,
    to,
  }),
  loader: ({ deps: { tab, ...search }, ...input }) => {
    if (tab === undefined)
      getReader(input)?.read('event', (queries) =>
        queries.prefetchInfiniteQuery(buildEventsQuery(buildEventFilters(search))),
      );
  },
  component: lazyRouteComponent(() => import('./events-page.tsx'), 'EventsPage'),
});

export const eventsRoutes = [events] as const;
