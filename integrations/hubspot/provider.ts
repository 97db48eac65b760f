import { z } from 'zod';
import type { Provider } from '../provider.ts';
import { HubSpotAccount } from './account.ts';
import { HubSpotClient } from './client.ts';
import { checkHubSpotSignature, parseHubSpotWebhook, SIGNATURE_HEADER, TIMESTAMP_HEADER } from './webhook.ts';

/** Request rate. It is below HubSpot's lowest limit, 100 requests in ten seconds for one app. */
const REQUESTS_PER_SECOND = 9;

const TEXT_MAX = 255;
const secretText = z.string().trim().min(1).max(TEXT_MAX);

const hubspotSecrets = z.object({
  access_token: secretText.meta({ description: 'Access token of the private app; it is never shown.' }),
  client_secret: secretText
    .optional()
    .meta({ description: 'Client secret of the app, which signs webhooks. Webhooks are refused without it.' }),
  app_id: secretText.optional().meta({ description: 'Id of the app, for people.' }),
});

export const hubspot: Provider = {
  account: {
    secrets: hubspotSecrets,
    exchanges: ['customer', 'invoice', 'payment', 'deal', 'pull', 'inbound'],
    requests_per_second: REQUESTS_PER_SECOND,
    detectLive: () => null,
    open: async (secrets, settings) =>
      new HubSpotAccount(new HubSpotClient(hubspotSecrets.parse(secrets).access_token, settings)),
    webhook_secrets: ['client_secret'],
    verifyWebhook: checkHubSpotSignature,
    signature_headers: [SIGNATURE_HEADER, TIMESTAMP_HEADER],
    parseWebhook: ({ body }) => parseHubSpotWebhook(body),
  },
};
