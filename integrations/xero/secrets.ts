import { z } from 'zod';
import { webAddress } from '../../core/foundation/record.ts';

const TEXT_MAX = 255;
/** Maximum length of a token. Access tokens are JSON web tokens of about 1,500 characters. */
const TOKEN_MAX = 4_096;
const secretText = z.string().trim().min(1).max(TEXT_MAX);
const tokenText = z.string().trim().min(1).max(TOKEN_MAX);

export const xeroSecrets = z.object({
  client_id: secretText.meta({ description: 'Client id of the app at Xero.' }),
  client_secret: secretText.meta({ description: 'Client secret of the app; it is never shown.' }),
  tenant_id: z.uuid().meta({ description: 'Id of the organisation (tenant).' }),
  redirect_uri: webAddress
    .optional()
    .meta({ description: 'Address to which Xero sends the browser back, as registered for the app.' }),
  webhook_key: secretText
    .optional()
    .meta({ description: 'Signing key of the webhook. Webhooks are refused without it.' }),
  sales_account: secretText.meta({ description: 'Account that all lines credit: its code or id.' }),
  payment_account: secretText.meta({ description: 'Account that receives payments and pays refunds: its code or id.' }),
  access_token: tokenText.optional().meta({ description: 'Access token. Default: the service requests one.' }),
  refresh_token: tokenText.optional().meta({
    description:
      'Refresh token, which `POST /oauth/init` obtains. An update without this field keeps the stored token.',
  }),
});
