/** All pages of the console. A page is a folder in pages/ with its routes.ts, listed here. */
import { QueryClient } from '@tanstack/react-query';
import { createRouter } from '@tanstack/react-router';
import { getEnvironment, hashInEnvironment, isOfEnvironment } from '../client/environment.ts';
import { getRetryDelay, shouldRetry } from '../client/retry.ts';
import { apiKeysRoutes } from '../pages/api-keys/routes.ts';
import { customersRoutes } from '../pages/customers/routes.ts';
import { eventsRoutes } from '../pages/events/routes.ts';
import { firstBillRoutes } from '../pages/first-bill/routes.ts';
import { homeRoutes } from '../pages/home/routes.ts';
import { invoicesRoutes } from '../pages/invoices/routes.ts';
import { metersRoutes } from '../pages/meters/routes.ts';
import { plansRoutes } from '../pages/plans/routes.ts';
import { settingsRoutes } from '../pages/settings/routes.ts';
import { signInRoute } from '../pages/sign-in/routes.ts';
import { subscriptionsRoutes } from '../pages/subscriptions/routes.ts';
import { usageRoutes } from '../pages/usage/routes.ts';
import { walletsRoutes } from '../pages/wallets/routes.ts';
import { webhooksRoutes } from '../pages/webhooks/routes.ts';
import { environmentRoute, rootRoute, startRoute } from './root-route.ts';

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      queryKeyHashFn: hashInEnvironment,
      retry: shouldRetry,
      retryDelay: getRetryDelay,
    },
  },
});

const tree = rootRoute.addChildren([
  startRoute,
  signInRoute,
  environmentRoute.addChildren([
    ...homeRoutes,
    ...firstBillRoutes,
    ...customersRoutes,
    ...usageRoutes,
    ...eventsRoutes,
    ...metersRoutes,
    ...plansRoutes,
    ...subscriptionsRoutes,
    ...invoicesRoutes,
    ...walletsRoutes,
    ...apiKeysRoutes,
    ...webhooksRoutes,
    ...settingsRoutes,
  ]),
]);

export const router = createRouter({
  routeTree: tree,
  context: { queries },
  defaultPreload: 'intent',
  scrollRestoration: true,
});

/** The page before may have read once more, for the environment after it: none of its answers is shown again. */
let shown_environment = getEnvironment();
router.subscribe('onResolved', () => {
  const before = shown_environment;
  shown_environment = getEnvironment();
  if (before === null || before === shown_environment) return;
  queries.removeQueries({ type: 'inactive', predicate: ({ queryKey }) => isOfEnvironment(queryKey) });
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
