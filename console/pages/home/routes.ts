import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { environmentRoute } from '../../routing/root-route.tsx';
import { type FirstBillSearch, readFirstBillSearch } from '../first-bill/routes.ts';

/** The page is the first bill until the environment has an invoice, with its search parameters. */
const home = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/',
  validateSearch: (input: Record<string, unknown>): FirstBillSearch => readFirstBillSearch(input),
  component: lazyRouteComponent(() => import('./home-page.tsx'), 'HomePage'),
});

export const homeRoutes = [home] as const;
