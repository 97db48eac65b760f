import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { isDay } from '../../components/range.ts';
import { environmentRoute } from '../../routing/root-route.tsx';
import { compact, readOneOf, readText, type SearchInput } from '../../routing/search.ts';
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
  component: lazyRouteComponent(() => import('./events-page.tsx'), 'EventsPage'),
});

export const eventsRoutes = [events] as const;
