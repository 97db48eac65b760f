import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { environmentRoute } from '../../routing/root-route.tsx';

const meters = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/meters',
  component: lazyRouteComponent(() => import('./meters-page.tsx'), 'MetersPage'),
});

const newMeter = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/meters/new',
  component: lazyRouteComponent(() => import('./new-meter-page.tsx'), 'NewMeterPage'),
});

const meter = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/meters/$meter_id',
  component: lazyRouteComponent(() => import('./meter-page.tsx'), 'MeterPage'),
});

export const metersRoutes = [meters, newMeter, meter] as const;
