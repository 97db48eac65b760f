/**
 * A connection is a destination outside the service, with its credentials (docs/rules/exports.md, "Connections"). No response contains its
 * secret.
 */
import { z } from 'zod';
import { invalid } from '../../foundation/error.ts';
import { anyCase, baseFields, metadata, orNull, requiredName } from '../../foundation/record.ts';

/** Enum values of the API. */
const PROVIDER_TYPES = [
  'flexprice',
  'stripe',
  's3',
  'hubspot',
  'razorpay',
  'chargebee',
  'quickbooks',
  'zoho_books',
  'nomod',
  'moyasar',
  'paddle',
  'whop',
  'tabs',
  'aws_marketplace',
  'gcp_marketplace',
  'azure_marketplace',
  'directory',
] as const;
export type ProviderType = (typeof PROVIDER_TYPES)[number];
/** Supported providers. */
const CONNECTED = ['s3', 'directory'] as const;
type ConnectedProvider = (typeof CONNECTED)[number];

const secretText = z.string().min(1).max(4_000);

const s3Secrets = z.object({
  aws_access_key_id: secretText.meta({ description: 'Access key id.' }),
  aws_secret_access_key: secretText.meta({ description: 'Secret access key; it is never shown.' }),
  aws_session_token: orNull(secretText).meta({
    description: 'Session token of temporary credentials; null for permanent ones.',
  }),
});

export const connectionSecrets = z.object({
  s3: orNull(s3Secrets).meta({
    description: 'Credentials of S3 or a compatible service; required for `s3`, refused for `directory`.',
  }),
});
export type ConnectionSecrets = z.output<typeof connectionSecrets>;

export const connectionShape = z.object({
  id: z.string(),
  name: requiredName.meta({ description: 'Display name of the connection.' }),
  provider_type: anyCase(PROVIDER_TYPES).meta({
    description:
      'Provider: `s3` is S3 or a compatible service, `directory` is a directory of this service. Other providers are refused.',
  }),
  metadata,
  sync_config: z.null().default(null).meta({ description: 'Not supported yet: must be null.' }),
  ...baseFields,
});
export type Connection = z.output<typeof connectionShape>;

export function checkConnection(provider_type: ProviderType, secrets: ConnectionSecrets | null): void {
  if (!isConnected(provider_type))
    throw invalid('provider_type', `${provider_type} is not there yet`, { allowed: CONNECTED });
  if (provider_type === 's3' && !secrets?.s3)
    throw invalid('encrypted_secret_data.s3', 'is required: the credentials with which files are written');
  if (provider_type === 'directory' && secrets?.s3)
    throw invalid('encrypted_secret_data.s3', 'a directory has no credentials');
}

function isConnected(provider_type: ProviderType): provider_type is ConnectedProvider {
  return (CONNECTED as readonly string[]).includes(provider_type);
}
