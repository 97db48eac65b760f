import { z } from 'zod';
import type { ProviderSecrets } from '../../core/platform/connection/record.ts';
import type { Provider } from '../provider.ts';
import { ChargebeeAccount } from './account.ts';
import { ChargebeeClient } from './client.ts';
import { checkBasicCredentials, parseChargebeeWebhook } from './webhook.ts';

const TEXT_MAX = 255;
const secretText = z.string().trim().min(1).max(TEXT_MAX);

/** Limit of test sites and of the smallest plan. */
const REQUESTS_PER_MINUTE = '150';
/** Share of the limit that is used, because other programs of the site need the rest. */
const USED_SHARE = 0.9;

const siteSecrets = z.object({
  site: z
    .string()
    .trim()
    // One label of a host name, so that no request goes to another host.
    .regex(
      /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/,
      'must be the name of the site: lower-case letters, digits and hyphens',
    )
    .meta({ description: 'Name of the site, which is the first part of its address: `acme-test` for a test site.' }),
  api_key: secretText.meta({ description: 'Full-access API key of the site; it is never shown.' }),
  webhook_username: secretText.optional().meta({
    description: 'User name of the webhook (HTTP Basic), chosen by you. Webhooks are refused without it.',
  }),
  webhook_password: secretText.optional().meta({
    description: 'Password of the webhook, chosen by you. Webhooks are refused without it.',
  }),
  requests_per_minute: z
    .string()
    .regex(/^[1-9]\d{1,4}$/, 'must be 10 to 99999')
    .default(REQUESTS_PER_MINUTE)
    .meta({ description: "Limit of the site's plan: requests per minute." }),
});

/** With one half alone, or two equal ones (webhook.ts), no webhook could be accepted. */
const chargebeeSecrets = siteSecrets
  .refine(
    ({ webhook_username, webhook_password }) => (webhook_username === undefined) === (webhook_password === undefined),
    { path: ['webhook_password'], message: 'is required with webhook_username, and the other way round' },
  )
  .refine(
    ({ webhook_username, webhook_password }) => webhook_username === undefined || webhook_username !== webhook_password,
    { path: ['webhook_password'], message: 'must differ from webhook_username' },
  );

export const chargebee: Provider = {
  account: {
    secrets: chargebeeSecrets,
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
    requests_per_second: (secrets) => (Number(parseSecrets(secrets).requests_per_minute) * USED_SHARE) / 60,
    detectLive: (secrets) => !parseSecrets(secrets).site.endsWith('-test'),
    async open(secrets, settings) {
      const credentials = parseSecrets(secrets);
      return new ChargebeeAccount(new ChargebeeClient(credentials, settings), credentials.site);
    },
    webhook_secrets: ['webhook_password', 'webhook_username'],
    verifyWebhook: ([password = '', username = ''], { headers }) =>
      checkBasicCredentials({ username, password, header: headers['authorization'] }),
    signature_headers: ['authorization'],
    parseWebhook: ({ body }) => parseChargebeeWebhook(body),
  },
};

function parseSecrets(secrets: ProviderSecrets) {
  return chargebeeSecrets.parse(secrets);
}
