import { z } from 'zod';
import { webAddress } from '../../core/foundation/record.ts';
import { DATA_CENTERS } from './data-centers.ts';

const TEXT_MAX = 255;
const TOKEN_MAX = 4_096;
const secretText = z.string().trim().min(1).max(TEXT_MAX);
const tokenText = z.string().trim().min(1).max(TOKEN_MAX);
/** Zoho's form of the secret of a webhook. */
const webhookSecret = z.string().regex(/^[A-Za-z0-9]{12,50}$/, 'must be 12 to 50 letters and digits');

export const zohoBooksSecrets = z.object({
  client_id: secretText.meta({ description: 'Client id of the app in the Zoho API console.' }),
  client_secret: secretText.meta({ description: 'Client secret of the app; it is never shown.' }),
  organization_id: z
    .string()
    .trim()
    .regex(/^\d{1,20}$/, 'must be digits')
    .meta({ description: 'Id of the organization.' }),
  accounts_server: z
    .enum(DATA_CENTERS.map((center) => center.accounts_server))
    .optional()
    .meta({ description: "Server of the data center's tokens. Default: `https://accounts.zoho.com`." }),
  api_domain: z
    .enum(DATA_CENTERS.map((center) => center.api_domain))
    .optional()
    .meta({ description: 'Server of the API. Default: that of the data center.' }),
  location: z
    .enum(DATA_CENTERS.map((center) => center.location))
    .optional()
    .meta({ description: 'Data center of the account. Default: that of `accounts_server`.' }),
  redirect_uri: webAddress
    .optional()
    .meta({ description: 'Address to which Zoho sends the browser back, as registered for the app.' }),
  webhook_secret: webhookSecret
    .optional()
    .meta({ description: 'Secret of the webhooks, chosen by you. Webhooks are refused without it.' }),
  previous_webhook_secret: webhookSecret.optional().meta({
    description: 'Secret before the last change, until all webhooks in Zoho have the new one.',
  }),
  access_token: tokenText.optional().meta({ description: 'Access token. Default: the service requests one.' }),
  refresh_token: tokenText.optional().meta({
    description:
      'Refresh token, which `POST /oauth/init` obtains. An update without this field keeps the stored token.',
  }),
});

/** Credentials that name the data center. */
export const dataCenterKeys = zohoBooksSecrets.pick({ accounts_server: true, api_domain: true, location: true });
