import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { isDay } from '../../components/range.ts';
import { environmentRoute } from '../../routing/root-route.tsx';
import { compact, readOneOf, readText, type SearchInput } from '../../routing/search.ts';

export const UNCOUNTED_REASONS = ['unmatched', 'unusable', 'conflict', 'dead_letter'] as const;
export type ReasonFilter = (typeof UNCOUNTED_REASONS)[number];
const DIALOGUES = ['correct', 'mend', 'void', 'send'] as const;

/**
 * `customer` is an external id; `property` is key=value; `from` and `to` are days, `to` is not in the range; `event` is the event whose
 * thread is open; `letter` is the dead letter that is mended.
 */
export type EventsSearch = {
  tab?: 'uncounted';
  reason?: ReasonFilter;
  customer?: string;
  name?: string;
  property?: string;
  from?: string;
  to?: string;
  event?: string;
  do?: (typeof DIALOGUES)[number];
  letter?: string;
};

const events = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/events',
  validateSearch: (input: SearchInput): EventsSearch => {
    const [from, to] = [readText(input, 'from'), readText(input, 'to')];
    return compact({
      tab: readOneOf(input, 'tab', ['uncounted']),
      reason: readOneOf(input, 'reason', UNCOUNTED_REASONS),
      customer: readText(input, 'customer'),
      name: readText(input, 'name'),
      property: readText(input, 'property'),
      ...(isDay(from) && isDay(to) && from < to ? { from, to } : {}),
      event: readText(input, 'event'),
      do: readOneOf(input, 'do', DIALOGUES),
      letter: readText(input, 'letter'),
    });
  },
  component: lazyRouteComponent(() => import('./events-page.tsx'), 'EventsPage'),
});

export const eventsRoutes = [events] as const;
