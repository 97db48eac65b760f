import { z } from 'zod';
import { invalid } from '../../core/foundation/error.ts';
import type { Provider } from '../provider.ts';
import { PaddleAccount } from './account.ts';
import { hasCurrency } from './amounts.ts';
import { findMode, PaddleClient } from './client.ts';
import { checkPaddleSignature, parsePaddleWebhook } from './webhook.ts';

const TEXT_MAX = 255;
const secretText = z.string().trim().min(1).max(TEXT_MAX);

/** Tax categories of products (developer.paddle.com/concepts/products/tax-categories). */
const TAX_CATEGORIES = [
  'standard',
  'saas',
  'digital-goods',
  'ebooks',
  'implementation-services',
  'professional-services',
  'software-programming-services',
  'training-services',
  'website-hosting',
] as const;

const paddleSecrets = z.object({
  api_key: secretText.meta({ description: 'API key, `pdl_live_apikey_…` or `pdl_sdbx_apikey_…`.' }),
  webhook_secret: secretText.optional().meta({
    description: 'Secret key of the notification destination, `pdl_ntfset_…`. Webhooks are refused without it.',
  }),
  client_side_token: secretText.optional().meta({ description: 'Client-side token; not used yet.' }),
  tax_category: z
    .enum(TAX_CATEGORIES)
    .optional()
    .meta({ description: 'Tax category of what is sold, as approved for the account. Default: standard.' }),
});

/** Request rate. It is below the limit of 240 requests a minute. */
const REQUESTS_PER_SECOND = 3;

export const paddle: Provider = {
  account: {
    secrets: paddleSecrets,
    exchanges: ['customer', 'invoice', 'payment_link', 'refund', 'credit_note', 'pull', 'inbound'],
    collects_tax: hasCurrency,
    requests_per_second: REQUESTS_PER_SECOND,
    detectLive(secrets) {
      const mode = findMode(paddleSecrets.parse(secrets).api_key);
      if (mode === null)
        throw invalid(
          'encrypted_secret_data.paddle.api_key',
          'must begin with pdl_live_apikey_ or pdl_sdbx_apikey_: replace a key from before May 2025',
        );
      return mode === 'live';
    },
    async open(secrets, settings) {
      const { api_key, tax_category = 'standard' } = paddleSecrets.parse(secrets);
      return new PaddleAccount(new PaddleClient(api_key, settings), { tax_category });
    },
    webhook_secrets: ['webhook_secret'],
    verifyWebhook: (secrets, { headers, body, now }) =>
      checkPaddleSignature({ secrets, header: headers['paddle-signature'], body, now }),
    signature_headers: ['paddle-signature'],
    parseWebhook: ({ body }) => parsePaddleWebhook(body),
  },
};
