/** Selects the backend that delivers webhooks: the first provider that the settings select. */
import { createSelected, listCapable } from '../../../integrations/find-capability.ts';
import type { WebhookSettings } from '../../../integrations/provider.ts';
import type { WebhookBackend } from '../../../integrations/webhook-backend.ts';

export function createWebhookBackend(settings: WebhookSettings): WebhookBackend {
  const backend = createSelected(listCapable('webhook_delivery'), settings);
  if (backend === null) throw new TypeError('no provider delivers webhooks');
  return backend;
}
