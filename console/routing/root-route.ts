/** The root of all pages, and the page below which all pages of an environment stand. */
import type { QueryClient } from '@tanstack/react-query';
import {
  createRootRouteWithContext,
  createRoute,
  lazyRouteComponent,
  notFound,
  Outlet,
  redirect,
  retainSearchParams,
} from '@tanstack/react-router';
import { setEnvironment } from '../client/environment.ts';
import { sessionQuery } from '../client/session.ts';
import { compact, readOneOf, type SearchInput } from './search.ts';

export type RouterContext = { queries: QueryClient };

/** UTC, or the zone of the browser. Without it the zone is UTC, in which the service bills. */
export const ZONES = ['utc', 'browser'] as const;
export type EnvironmentSearch = { zone?: (typeof ZONES)[number] };

const loadFrame = () => import('../shell/frame.tsx');

export const rootRoute = createRootRouteWithContext<RouterContext>()({
  component: Outlet,
  errorComponent: lazyRouteComponent(loadFrame, 'FailedPage'),
  notFoundComponent: lazyRouteComponent(loadFrame, 'MissingPageAlone'),
});

/** `/` leads to the environment that was open last, else the first one. */
export const startRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/',
  beforeLoad: async ({ context: { queries } }) => {
    const session = await queries.ensureQueryData(sessionQuery);
    if (session === null) throw redirect({ to: '/sign-in' });
    const last = localStorage.getItem(LAST_ENVIRONMENT);
    const environment = session.environments.find(({ id }) => id === last) ?? session.environments[0];
    if (environment) throw redirect({ to: '/env/$environment_id', params: { environment_id: environment.id } });
  },
  // A user with a role that may read has an environment, and was redirected to it above.
  component: lazyRouteComponent(() => import('../shell/no-role-page.tsx'), 'NoRolePage'),
});

const LAST_ENVIRONMENT = 'farthing.environment';

export const environmentRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/env/$environment_id',
  validateSearch: (input: SearchInput): EnvironmentSearch => compact({ zone: readOneOf(input, 'zone', ZONES) }),
  search: { middlewares: [retainSearchParams<EnvironmentSearch>(['zone'])] },
  beforeLoad: async ({ context: { queries }, params, location: { href }, preload }) => {
    const session = await queries.ensureQueryData(sessionQuery);
    if (session === null) throw redirect({ to: '/sign-in', search: { to: href } });
    if (session.environments.length === 0) throw redirect({ to: '/' });
    if (!session.environments.some(({ id }) => id === params.environment_id)) throw notFound();
    // A link under the pointer is only prepared: the page that is open stays in its environment.
    if (preload) return;
    setEnvironment(params.environment_id);
    localStorage.setItem(LAST_ENVIRONMENT, params.environment_id);
  },
  component: lazyRouteComponent(loadFrame, 'Shell'),
  notFoundComponent: lazyRouteComponent(loadFrame, 'MissingPage'),
});
