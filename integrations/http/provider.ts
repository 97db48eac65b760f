/** Provider of webhooks without a vendor: this service itself delivers to the endpoints of its customers. */
import type { Provider } from '../provider.ts';
import { createHttpBackend } from './webhook-backend.ts';

export const http: Provider = {
  webhook_delivery: {
    create: (settings) => createHttpBackend({ allow_private_addresses: settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES }),
  },
};
