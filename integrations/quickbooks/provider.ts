import type { Provider } from '../provider.ts';
import { ProviderError } from '../provider-error.ts';
import { QuickBooksAccount } from './account.ts';
import { QuickBooksClient } from './client.ts';
import { quickbooksOAuth } from './oauth.ts';
import { quickbooksSecrets } from './secrets.ts';
import { checkIntuitSignature, parseIntuitWebhook } from './webhook.ts';

/** Request rate. It is below Intuit's limit of 500 requests a minute for one company. */
const REQUESTS_PER_SECOND = 8;

export const quickbooks: Provider = {
  account: {
    secrets: quickbooksSecrets,
    exchanges: ['customer', 'invoice', 'payment', 'credit_note', 'pull', 'inbound'],
    requests_per_second: REQUESTS_PER_SECOND,
    // Only `environment` is parsed, because the credentials of a new OAuth flow do not name the company yet.
    detectLive: (secrets) => quickbooksSecrets.pick({ environment: true }).parse(secrets).environment === 'production',
    async open(secrets, settings) {
      const { access_token, ...company } = quickbooksSecrets.parse(secrets);
      if (access_token === undefined)
        throw new ProviderError('person', 'there is no access token: grant access (POST /oauth/init)', {
          is_unauthorized: true,
        });
      return new QuickBooksAccount(new QuickBooksClient({ ...company, access_token }, settings), company);
    },
    webhook_secrets: ['webhook_verifier_token'],
    verifyWebhook: (tokens, { headers, body }) =>
      checkIntuitSignature({ tokens, header: headers['intuit-signature'], body }),
    signature_headers: ['intuit-signature'],
    parseWebhook: ({ body }) => parseIntuitWebhook(body),
    oauth: quickbooksOAuth,
  },
};
