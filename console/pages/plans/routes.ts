import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { environmentRoute } from '../../routing/root-route.ts';
import { compact, readOneOf, type SearchInput } from '../../routing/search.ts';

/** `view` shows archived plans; `sheet` is the sheet that is open. */
export type PlansSearch = { view?: 'archived'; sheet?: 'new' };

const PLAN_SHEETS = ['edit', 'copy', 'roll-out', 'entitlement', 'grant', 'record'] as const;
export type PlanSearch = { sheet?: (typeof PLAN_SHEETS)[number] };

/** `why` opens the sum behind the cost. */
export type PriceSearch = { why?: 'cost'; sheet?: 'record' };

const plans = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/plans',
  validateSearch: (input: SearchInput): PlansSearch =>
    compact({ view: readOneOf(input, 'view', ['archived']), sheet: readOneOf(input, 'sheet', ['new']) }),
  component: lazyRouteComponent(() => import('./plans-page.tsx'), 'PlansPage'),
});

const plan = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/plans/$plan_id',
  validateSearch: (input: SearchInput): PlanSearch => compact({ sheet: readOneOf(input, 'sheet', PLAN_SHEETS) }),
  component: lazyRouteComponent(() => import('./plan-page.tsx'), 'PlanPage'),
});

const readPriceSearch = (input: SearchInput): PriceSearch =>
  compact({ why: readOneOf(input, 'why', ['cost']), sheet: readOneOf(input, 'sheet', ['record']) });

const newPrice = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/plans/$plan_id/prices/new',
  validateSearch: readPriceSearch,
  component: lazyRouteComponent(() => import('./new-price-page.tsx'), 'NewPricePage'),
});

const price = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/plans/$plan_id/prices/$price_id',
  validateSearch: readPriceSearch,
  component: lazyRouteComponent(() => import('./price-page.tsx'), 'PricePage'),
});

export const plansRoutes = [plans, plan, newPrice, price] as const;
