import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { environmentRoute } from '../../routing/root-route.tsx';

const customers = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/customers',
  component: lazyRouteComponent(() => import('./customers-page.tsx'), 'CustomersPage'),
});

const customer = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/customers/$customer_id',
  component: lazyRouteComponent(() => import('./customer-page.tsx'), 'CustomerPage'),
});

export const customersRoutes = [customers, customer] as const;
