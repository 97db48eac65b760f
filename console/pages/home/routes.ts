import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { getReader } from '../../routing/read-ahead.ts';
import { environmentRoute } from '../../routing/root-route.ts';
import { attentionQuery, eventWindowsQuery, recentInvoicesQuery, revenuesQuery } from './queries.ts';

const home = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/',
  loader: (input) => {
    const reader = getReader(input);
    reader?.read('invoice', (queries) => queries.prefetchQuery(recentInvoicesQuery));
    reader?.read('invoice', (queries) => queries.prefetchQuery(revenuesQuery));
    reader?.read('event', (queries) => queries.prefetchQuery(attentionQuery));
    reader?.read('event', (queries) => queries.prefetchQuery(eventWindowsQuery));
  },
  component: lazyRouteComponent(() => import('./home-page.tsx'), 'HomePage'),
});

export const homeRoutes = [home] as const;
