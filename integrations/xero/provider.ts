import type { Provider } from '../provider.ts';
import { ProviderError } from '../provider-error.ts';
import { XeroAccount } from './account.ts';
import { XeroClient } from './client.ts';
import { xeroOAuth } from './oauth.ts';
import { xeroSecrets } from './secrets.ts';
import { checkXeroSignature, parseXeroWebhook } from './webhook.ts';

/** Request rate: Xero accepts 60 requests a minute for one organisation. */
const REQUESTS_PER_SECOND = 1;

export const xero: Provider = {
  account: {
    secrets: xeroSecrets,
    exchanges: ['customer', 'invoice', 'payment', 'credit_note', 'pull', 'inbound'],
    requests_per_second: REQUESTS_PER_SECOND,
    // Keys do not show whether the organisation is the demo company.
    detectLive: () => null,
    async open(secrets, settings) {
      const { access_token, ...organisation } = xeroSecrets.parse(secrets);
      if (access_token === undefined)
        throw new ProviderError('person', 'there is no access token: grant access (POST /oauth/init)', {
          is_unauthorized: true,
        });
      return new XeroAccount(new XeroClient({ ...organisation, access_token }, settings), organisation);
    },
    webhook_secrets: ['webhook_key'],
    verifyWebhook: (keys, { headers, body }) => checkXeroSignature({ keys, header: headers['x-xero-signature'], body }),
    signature_headers: ['x-xero-signature'],
    wants_empty_answer: true,
    parseWebhook: ({ body }) => parseXeroWebhook(body),
    oauth: xeroOAuth,
  },
};
