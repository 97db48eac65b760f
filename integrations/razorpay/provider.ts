import { z } from 'zod';
import { invalid } from '../../core/foundation/error.ts';
import type { Provider } from '../provider.ts';
import { openRazorpayAccount } from './account.ts';
import { checkRazorpaySignature, parseRazorpayWebhook } from './webhook.ts';

const TEXT_MAX = 255;
const secretText = z.string().trim().min(1).max(TEXT_MAX);

const razorpaySecrets = z.object({
  key_id: secretText.meta({ description: 'Id of the API key, `rzp_test_…` or `rzp_live_…`.' }),
  secret_key: secretText.meta({ description: 'Secret of the API key; it is never shown.' }),
  webhook_secret: secretText.optional().meta({
    description: 'Secret of the webhook, chosen by you. Webhooks are refused without it.',
  }),
  previous_webhook_secret: secretText.optional().meta({
    description: 'Secret before the last change. Razorpay signs retries with it for a day; leave it out after that.',
  }),
});

const KEY_ID = /^rzp_(test|live)_\w+$/;

export const razorpay: Provider = {
  account: {
    secrets: razorpaySecrets,
    exchanges: ['customer', 'invoice', 'payment_link', 'saved_card', 'refund', 'pull', 'inbound'],
    detectLive(secrets) {
      const mode = KEY_ID.exec(razorpaySecrets.parse(secrets).key_id)?.[1];
      if (mode === undefined)
        throw invalid('encrypted_secret_data.razorpay.key_id', 'must begin with rzp_test_ or rzp_live_');
      return mode === 'live';
    },
    open: async (secrets, settings) => await openRazorpayAccount(razorpaySecrets.parse(secrets), settings),
    webhook_secrets: ['webhook_secret', 'previous_webhook_secret'],
    verifyWebhook: (secrets, { headers, body }) => checkRazorpaySignature({ secrets, headers, body }),
    signature_headers: ['x-razorpay-signature'],
    parseWebhook: parseRazorpayWebhook,
  },
};
