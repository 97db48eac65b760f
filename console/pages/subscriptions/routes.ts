import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { environmentRoute } from '../../routing/root-route.tsx';

const subscriptions = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/subscriptions',
  component: lazyRouteComponent(() => import('./subscriptions-page.tsx'), 'SubscriptionsPage'),
});

const newSubscription = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/subscriptions/new',
  component: lazyRouteComponent(() => import('./new-subscription-page.tsx'), 'NewSubscriptionPage'),
});

const subscription = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/subscriptions/$subscription_id',
  component: lazyRouteComponent(() => import('./subscription-page.tsx'), 'SubscriptionPage'),
});

export const subscriptionsRoutes = [subscriptions, newSubscription, subscription] as const;
