import { z } from 'zod';
import { invalid } from '../../core/foundation/error.ts';
import type { Provider } from '../provider.ts';
import { openStripeAccount } from './account.ts';
import { parseStripeEvents } from './events.ts';
import { checkStripeSignature } from './webhook.ts';

const TEXT_MAX = 255;
const secretText = z.string().trim().min(1).max(TEXT_MAX);

const stripeSecrets = z.object({
  publishable_key: secretText.optional().meta({ description: 'Publishable key, `pk_…`; for pages in a browser.' }),
  secret_key: secretText.meta({
    description: 'Secret key `sk_…` or, better, a restricted key `rk_…`; it is never shown.',
  }),
  webhook_secret: secretText.optional().meta({
    description: 'Signing secret of the webhook endpoint, `whsec_…`. Webhooks are refused without it.',
  }),
  account_id: secretText.optional().meta({
    description:
      'Account of the key, `acct_…`. A key of another account is refused, and so is a key that may not read its account.',
  }),
});

const SECRET_KEY = /^(?:sk|rk)_(test|live)_\w+$/;

export const stripe: Provider = {
  account: {
    secrets: stripeSecrets,
    exchanges: [
      'customer',
      'invoice',
      'payment',
      'payment_link',
      'saved_card',
      'refund',
      'credit_note',
      'pull',
      'inbound',
    ],
    // Limit of a test account; a live one has 100 (docs.stripe.com/rate-limits).
    requests_per_second: 25,
    detectLive(secrets) {
      const mode = SECRET_KEY.exec(stripeSecrets.parse(secrets).secret_key)?.[1];
      if (mode === undefined)
        throw invalid(
          'encrypted_secret_data.stripe.secret_key',
          'must begin with sk_test_, rk_test_, sk_live_ or rk_live_',
        );
      return mode === 'live';
    },
    open: async (secrets, settings) => await openStripeAccount(stripeSecrets.parse(secrets), settings),
    webhook_secrets: ['webhook_secret'],
    verifyWebhook: (secrets, { headers, body, now }) =>
      checkStripeSignature({ secrets, header: headers['stripe-signature'], body, now }),
    signature_headers: ['stripe-signature'],
    parseWebhook: ({ body }) => parseStripeEvents(body),
  },
};
