import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { environmentRoute } from '../../routing/root-route.tsx';

const plans = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/plans',
  component: lazyRouteComponent(() => import('./plans-page.tsx'), 'PlansPage'),
});

const plan = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/plans/$plan_id',
  component: lazyRouteComponent(() => import('./plan-page.tsx'), 'PlanPage'),
});

const newPrice = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/plans/$plan_id/prices/new',
  component: lazyRouteComponent(() => import('./new-price-page.tsx'), 'NewPricePage'),
});

const price = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/plans/$plan_id/prices/$price_id',
  component: lazyRouteComponent(() => import('./price-page.tsx'), 'PricePage'),
});

export const plansRoutes = [plans, plan, newPrice, price] as const;
