import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { environmentRoute } from '../../routing/root-route.ts';
import { compact, readOneOf, readText, type SearchInput } from '../../routing/search.ts';

export type WebhooksSearch = { sheet?: 'new' };

const SHEETS = ['edit', 'rotate', 'record', 'delivery'] as const;
export const DELIVERY_VIEWS = ['pending', 'delivered', 'failed'] as const;
/** `sheet` is the sheet that is open; `delivery` is the delivery that it is about; `view` shows deliveries of one status. */
export type WebhookSearch = {
  view?: (typeof DELIVERY_VIEWS)[number];
  sheet?: (typeof SHEETS)[number];
  delivery?: string;
};

const webhooks = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/webhooks',
  validateSearch: (input: SearchInput): WebhooksSearch => compact({ sheet: readOneOf(input, 'sheet', ['new']) }),
  component: lazyRouteComponent(() => import('./webhooks-page.tsx'), 'WebhooksPage'),
});

const webhook = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/webhooks/$endpoint_id',
  validateSearch: (input: SearchInput): WebhookSearch =>
    compact({
      view: readOneOf(input, 'view', DELIVERY_VIEWS),
      sheet: readOneOf(input, 'sheet', SHEETS),
      delivery: readText(input, 'delivery'),
    }),
  component: lazyRouteComponent(() => import('./webhook-page.tsx'), 'WebhookPage'),
});

export const webhooksRoutes = [webhooks, webhook] as const;
