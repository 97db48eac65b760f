/** Selects the backend that delivers webhooks: Svix if its token is configured, else our own. */
import type { WebhookBackend } from '../../../integrations/webhooks/backend.ts';
import { createHttpBackend } from '../../../integrations/webhooks/http.ts';
import { createSvixBackend } from '../../../integrations/webhooks/svix.ts';

type WebhookSettings = {
  readonly SVIX_TOKEN?: string | undefined;
  readonly SVIX_SERVER_URL?: string | undefined;
  readonly WEBHOOK_ALLOW_PRIVATE_ADDRESSES: boolean;
};

export function createWebhookBackend(settings: WebhookSettings): WebhookBackend {
  const { SVIX_TOKEN: token, SVIX_SERVER_URL: server_url } = settings;
  if (token !== undefined) return createSvixBackend({ token, server_url });
  return createHttpBackend({ allow_private_addresses: settings.WEBHOOK_ALLOW_PRIVATE_ADDRESSES });
}
