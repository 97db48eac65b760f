import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { environmentRoute } from '../../routing/root-route.tsx';

const apiKeys = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/api-keys',
  component: lazyRouteComponent(() => import('./api-keys-page.tsx'), 'ApiKeysPage'),
});

export const apiKeysRoutes = [apiKeys] as const;
