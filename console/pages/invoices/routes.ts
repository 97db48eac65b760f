import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { environmentRoute } from '../../routing/root-route.tsx';

const invoices = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/invoices',
  component: lazyRouteComponent(() => import('./invoices-page.tsx'), 'InvoicesPage'),
});

const invoice = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/invoices/$invoice_id',
  component: lazyRouteComponent(() => import('./invoice-page.tsx'), 'InvoicePage'),
});

export const invoicesRoutes = [invoices, invoice] as const;
