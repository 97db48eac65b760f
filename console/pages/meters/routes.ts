import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { environmentRoute } from '../../routing/root-route.ts';
import { compact, readOneOf, readText, type SearchInput } from '../../routing/search.ts';

export type MetersSearch = { view?: 'archived' };

/** `event` is the name that the builder begins with, such as one that no meter knows. */
export type NewMeterSearch = { event?: string };

export const METER_DAYS = ['7', '30', '90'] as const;
const METER_SHEETS = ['filters', 'record'] as const;
export type MeterSearch = { days?: (typeof METER_DAYS)[number]; sheet?: (typeof METER_SHEETS)[number] };

const meters = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/meters',
  validateSearch: (input: SearchInput): MetersSearch => compact({ view: readOneOf(input, 'view', ['archived']) }),
  component: lazyRouteComponent(() => import('./meters-page.tsx'), 'MetersPage'),
});

const newMeter = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/meters/new',
  validateSearch: (input: SearchInput): NewMeterSearch => compact({ event: readText(input, 'event') }),
  component: lazyRouteComponent(() => import('./new-meter-page.tsx'), 'NewMeterPage'),
});

const meter = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/meters/$meter_id',
  validateSearch: (input: SearchInput): MeterSearch =>
    compact({ days: readOneOf(input, 'days', METER_DAYS), sheet: readOneOf(input, 'sheet', METER_SHEETS) }),
  component: lazyRouteComponent(() => import('./meter-page.tsx'), 'MeterPage'),
});

export const metersRoutes = [meters, newMeter, meter] as const;
