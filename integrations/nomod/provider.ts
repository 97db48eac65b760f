import { z } from 'zod';
import type { Provider } from '../provider.ts';
import { NomodAccount } from './account.ts';
import { NomodClient } from './client.ts';
import { checkNomodSignature, parseNomodWebhook } from './webhook.ts';

const TEXT_MAX = 255;
const secretText = z.string().trim().min(1).max(TEXT_MAX);

const nomodSecrets = z.object({
  api_key: secretText.meta({ description: 'API key; it is never shown.' }),
  webhook_secret: secretText.optional().meta({
    description: 'Signing secret of the webhook, `whsec_…`. Webhooks are refused without it.',
  }),
});

const API_KEY = /^sk_(test|live)_/;

export const nomod: Provider = {
  account: {
    secrets: nomodSecrets,
    exchanges: ['customer', 'invoice', 'payment_link', 'refund', 'pull', 'inbound'],
    // Nomod publishes no limit.
    requests_per_second: 10,
    detectLive(secrets) {
      const mode = API_KEY.exec(nomodSecrets.parse(secrets).api_key)?.[1];
      return mode === undefined ? null : mode === 'live';
    },
    open: async (secrets, settings) => new NomodAccount(new NomodClient(nomodSecrets.parse(secrets).api_key, settings)),
    webhook_secrets: ['webhook_secret'],
    verifyWebhook: (secrets, webhook) => checkNomodSignature({ ...webhook, secrets }),
    // No `signature_headers`: the two schemes have no header in common.
    parseWebhook: parseNomodWebhook,
  },
};
