import type { Provider } from '../provider.ts';
import { ProviderError } from '../provider-error.ts';
import { ZohoBooksAccount } from './account.ts';
import { ZohoBooksClient } from './client.ts';
import { findDataCenter } from './data-centers.ts';
import { zohoBooksOAuth } from './oauth.ts';
import { dataCenterKeys, zohoBooksSecrets } from './secrets.ts';
import { checkZohoSignature, FORM, parseZohoWebhook, zohoWebhookQuery } from './webhook.ts';

/** Request rate. It is below Zoho's limit of 100 requests a minute for one organization. */
const REQUESTS_PER_SECOND = 1.5;

export const zoho_books: Provider = {
  account: {
    secrets: zohoBooksSecrets,
    exchanges: ['customer', 'invoice', 'payment', 'credit_note', 'pull', 'inbound'],
    requests_per_second: REQUESTS_PER_SECOND,
    // Keys do not show whether the organization is for tests.
    detectLive(secrets) {
      findDataCenter(dataCenterKeys.parse(secrets), 'encrypted_secret_data.zoho_books.');
      return null;
    },
    async open(secrets, settings) {
      const { access_token, organization_id, ...named } = zohoBooksSecrets.parse(secrets);
      if (access_token === undefined)
        throw new ProviderError('person', 'there is no access token: grant access (POST /oauth/init)', {
          is_unauthorized: true,
        });
      const { api_domain } = findDataCenter(named);
      return new ZohoBooksAccount(
        new ZohoBooksClient({ api_domain, organization_id, access_token }, settings),
        organization_id,
      );
    },
    webhook_secrets: ['webhook_secret', 'previous_webhook_secret'],
    verifyWebhook: (secrets, webhook) => checkZohoSignature({ ...webhook, secrets }),
    signature_headers: ['x-zoho-webhook-signature'],
    webhook_query: zohoWebhookQuery,
    webhook_body_type: FORM,
    parseWebhook: parseZohoWebhook,
    oauth: zohoBooksOAuth,
  },
};
