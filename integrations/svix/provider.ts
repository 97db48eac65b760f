import type { Provider } from '../provider.ts';
import { createSvixBackend } from './webhook-backend.ts';

export const svix: Provider = {
  webhook_delivery: {
    create: ({ SVIX_TOKEN: token, SVIX_SERVER_URL: server_url }) =>
      token === undefined ? null : createSvixBackend({ token, server_url }),
  },
};
