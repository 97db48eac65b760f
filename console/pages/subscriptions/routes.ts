import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { environmentRoute } from '../../routing/root-route.ts';
import { compact, readOneOf, readText, readTexts, type SearchInput } from '../../routing/search.ts';
import { SUBSCRIPTION_FILTERS, type SubscriptionListFilter } from './subscription.ts';

/** `customer` and `plan` are ids. */
export type SubscriptionsSearch = { show?: SubscriptionListFilter; customer?: string; plan?: string };

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

const TERM_GROUPS = [
  'discount',
  'commitment',
  'addons',
  'entitlements',
  'phases',
  'billing',
  'taxes',
  'payer',
] as const;
export type TermGroup = (typeof TERM_GROUPS)[number];

/** `customer` and `plan` are chosen when the page opens; `sheet` shows a new customer or the request; `terms` lists the parts that are open. */
export type NewSubscriptionSearch = {
  customer?: string;
  plan?: string;
  sheet?: 'customer' | 'request';
  terms?: readonly TermGroup[];
};

const newSubscription = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/subscriptions/new',
  validateSearch: (input: SearchInput): NewSubscriptionSearch =>
    compact({
      customer: readText(input, 'customer'),
      plan: readText(input, 'plan'),
      sheet: readOneOf(input, 'sheet', ['customer', 'request']),
      terms: readTerms(input),
    }),
  component: lazyRouteComponent(() => import('./new-subscription-page.tsx'), 'NewSubscriptionPage'),
});

function readTerms(input: SearchInput): readonly TermGroup[] | undefined {
  const named = readTexts(input, 'terms') ?? [];
  const terms = TERM_GROUPS.filter((group) => named.includes(group));
  return terms.length > 0 ? terms : undefined;
}

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
