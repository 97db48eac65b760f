import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { rootRoute } from '../../routing/root-route.ts';
import { compact, readText, type SearchInput } from '../../routing/search.ts';

/** `to` is the page that needs a session. */
export const signInRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sign-in',
  validateSearch: (input: SearchInput): { to?: string } => compact({ to: readText(input, 'to') }),
  component: lazyRouteComponent(() => import('./sign-in-page.tsx'), 'SignInPage'),
});
