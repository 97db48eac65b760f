import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { environmentRoute } from '../../routing/root-route.tsx';

const firstBill = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/first-bill',
  component: lazyRouteComponent(() => import('./first-bill-page.tsx'), 'FirstBillPage'),
});

export const firstBillRoutes = [firstBill] as const;
