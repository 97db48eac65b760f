import { z } from 'zod';
import { invalid } from '../../core/foundation/error.ts';
import type { Provider } from '../provider.ts';
import { MoyasarAccount } from './account.ts';
import { MoyasarClient } from './client.ts';
import { checkSecretToken, parseMoyasarWebhook } from './webhook.ts';

const TEXT_MAX = 255;
const secretText = z.string().trim().min(1).max(TEXT_MAX);

const moyasarSecrets = z.object({
  publishable_key: secretText.optional().meta({ description: 'Publishable key, `pk_…`; for forms in a browser.' }),
  secret_key: secretText.meta({ description: 'Secret key, `sk_test_…` or `sk_live_…`; it is never shown.' }),
  webhook_secret: secretText.optional().meta({
    description: 'Secret token of the webhook, chosen by you. Webhooks are refused without it.',
  }),
});

const SECRET_KEY = /^sk_(test|live)_\w+$/;

export const moyasar: Provider = {
  account: {
    secrets: moyasarSecrets,
    exchanges: ['invoice', 'payment_link', 'saved_card', 'refund', 'pull', 'inbound'],
    // Moyasar publishes no limit.
    requests_per_second: 10,
    detectLive(secrets) {
      const mode = SECRET_KEY.exec(moyasarSecrets.parse(secrets).secret_key)?.[1];
      if (mode === undefined)
        throw invalid('encrypted_secret_data.moyasar.secret_key', 'must begin with sk_test_ or sk_live_');
      return mode === 'live';
    },
    open: async (secrets, settings) =>
      new MoyasarAccount(new MoyasarClient(moyasarSecrets.parse(secrets).secret_key, settings)),
    webhook_secrets: ['webhook_secret'],
    verifyWebhook: (secrets, { body }) => checkSecretToken({ secrets, body }),
    parseWebhook: ({ body }) => parseMoyasarWebhook(body),
  },
};
