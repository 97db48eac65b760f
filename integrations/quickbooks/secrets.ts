import { z } from 'zod';
import { webAddress } from '../../core/foundation/record.ts';

const TEXT_MAX = 255;
/** Maximum length of a token. Intuit announces tokens of up to 4,096 characters. */
const TOKEN_MAX = 4_096;
const secretText = z.string().trim().min(1).max(TEXT_MAX);
const tokenText = z.string().trim().min(1).max(TOKEN_MAX);

export const quickbooksSecrets = z.object({
  client_id: secretText.meta({ description: 'Client id of the app at Intuit.' }),
  client_secret: secretText.meta({ description: 'Client secret of the app; it is never shown.' }),
  realm_id: z
    .string()
    .trim()
    .regex(/^\d{1,20}$/, 'must be digits')
    .meta({ description: 'Id of the company.' }),
  environment: z
    .enum(['sandbox', 'production'])
    .meta({ description: '`sandbox` for development keys, `production` for a real company.' }),
  redirect_uri: webAddress
    .optional()
    .meta({ description: 'Address to which Intuit sends the browser back, as registered for the app.' }),
  webhook_verifier_token: secretText
    .optional()
    .meta({ description: 'Verifier token of the webhook. Webhooks are refused without it.' }),
  income_account_id: secretText
    .optional()
    .meta({ description: 'Income account of the item that all lines name. Required until this item exists.' }),
  access_token: tokenText.optional().meta({ description: 'Access token. Default: the service requests one.' }),
  refresh_token: tokenText.optional().meta({
    description:
      'Refresh token, which `POST /oauth/init` obtains. An update without this field keeps the stored token.',
  }),
});
