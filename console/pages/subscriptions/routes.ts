import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { environmentRoute } from '../../routing/root-route.tsx';
import { compact, readOneOf, readText, type SearchInput } from '../../routing/search.ts';
import { SUBSCRIPTION_FILTERS, type SubscriptionFilter } from './subscription.ts';

/** `customer` and `plan` are ids. */
export type SubscriptionsSearch = { show?: SubscriptionFilter; customer?: string; plan?: string };

const subscriptions = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/subscriptions',
  validateSearch: (input: SearchInput): SubscriptionsSearch =>
    compact({
      show: readOneOf(input, 'show', SUBSCRIPTION_FILTERS),
      customer: readText(input, 'customer'),
      plan: readText(input, 'plan'),
    }),
  component: lazyRouteComponent(() => import('./subscriptions-page.tsx'), 'SubscriptionsPage'),
});

/** `customer` and `plan` are chosen when the page opens; `sheet` is that of a new customer, or of the request. */
export type NewSubscriptionSearch = { customer?: string; plan?: string; sheet?: 'customer' | 'request' };

const newSubscription = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/subscriptions/new',
  validateSearch: (input: SearchInput): NewSubscriptionSearch =>
    compact({
      customer: readText(input, 'customer'),
      plan: readText(input, 'plan'),
      sheet: readOneOf(input, 'sheet', ['customer', 'request']),
    }),
  component: lazyRouteComponent(() => import('./new-subscription-page.tsx'), 'NewSubscriptionPage'),
});

const SUBSCRIPTION_SHEETS = ['plan', 'quantity', 'cancel', 'addon', 'record'] as const;

/** `why` is the number of a line of the next invoice, or `total`; `addon` is the association that is detached. */
export type SubscriptionSearch = { why?: string; sheet?: (typeof SUBSCRIPTION_SHEETS)[number]; addon?: string };

const subscription = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/subscriptions/$subscription_id',
  validateSearch: (input: SearchInput): SubscriptionSearch =>
    compact({
      why: readText(input, 'why'),
      sheet: readOneOf(input, 'sheet', SUBSCRIPTION_SHEETS),
      addon: readText(input, 'addon'),
    }),
  component: lazyRouteComponent(() => import('./subscription-page.tsx'), 'SubscriptionPage'),
});

export const subscriptionsRoutes = [subscriptions, newSubscription, subscription] as const;
