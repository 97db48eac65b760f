import { z } from 'zod';
import type { Provider } from '../provider.ts';
import { WhopAccount } from './account.ts';
import { WhopClient } from './client.ts';
import { checkWhopSignature, parseWhopWebhook } from './webhook.ts';

const TEXT_MAX = 255;
const secretText = z.string().trim().min(1).max(TEXT_MAX);

const whopSecrets = z.object({
  api_key: secretText.meta({ description: 'API key of the company; it is never shown.' }),
  company_id: secretText
    .regex(/^biz_\w+$/, 'must begin with biz_')
    .meta({ description: 'Id of the company, `biz_…`.' }),
  product_id: secretText
    .regex(/^prod_\w+$/, 'must begin with prod_')
    .optional()
    .meta({ description: 'Product of all invoices and payments, `prod_…`. Default: each invoice has its own.' }),
  environment: z
    .enum(['production', 'sandbox'])
    .default('production')
    .meta({ description: 'Whether the key is of the sandbox. The keys themselves do not show it.' }),
  webhook_secret: secretText
    .optional()
    .meta({ description: 'Secret of the webhook. Webhooks are refused without it.' }),
});

export const whop: Provider = {
  account: {
    secrets: whopSecrets,
    exchanges: ['invoice', 'payment_link', 'saved_card', 'refund', 'pull', 'inbound'],
    // Whop publishes no limit.
    requests_per_second: 10,
    detectLive: (secrets) => whopSecrets.parse(secrets).environment === 'production',
    async open(secrets, settings) {
      const access = whopSecrets.parse(secrets);
      return new WhopAccount(new WhopClient(access, settings), access);
    },
    webhook_secrets: ['webhook_secret'],
    verifyWebhook: (secrets, webhook) => checkWhopSignature({ secrets, ...webhook }),
    signature_headers: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
    parseWebhook: parseWhopWebhook,
  },
};
