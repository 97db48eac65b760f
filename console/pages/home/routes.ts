import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { getReader } from '../../routing/read-ahead.ts';
import { environmentRoute } from '../../routing/root-route.tsx';
import { attentionQuery, recentInvoicesQuery, revenuesQuery } from './queries.ts';

const home = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/',
  loader: (input) => {
    const reader = getReader(input);
    reader?.read('invoice', (queries) => queries.prefetchQuery(recentInvoicesQuery));
    reader?.read('invoice', (queries) => queries.prefetchQuery(revenuesQuery));
    reader?.read('invoice', (queries) => queries.prefetchQuery(attentionQuery));
  },
  component: lazyRouteComponent(() => import('./home-page.tsx'), 'HomePage'),
});

export const homeRoutes = [home] as const;
