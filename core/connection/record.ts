/** A connection: where else something goes, and with which credentials (docs/rules/exports.md, "Connections"). Its secret is in no answer. */
import { z } from 'zod';
import { invalid } from '../error.ts';
import { anyCase, baseFields, metadata, orNull, requiredName } from '../record.ts';

/** All that the interface knows. */
export const PROVIDER_TYPES = [
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
/** Those that there are. */
const CONNECTED = ['s3', 'directory'] as const;
export type ConnectedProvider = (typeof CONNECTED)[number];

const secretText = z.string().min(1).max(4_000);

export const s3Secrets = z.object({
  aws_access_key_id: secretText.meta({ description: 'The id of the key.' }),
  aws_secret_access_key: secretText.meta({ description: 'The key itself; it is never shown.' }),
  aws_session_token: orNull(secretText).meta({ description: 'Of credentials that end; null of those that do not.' }),
});
export type S3Secrets = z.output<typeof s3Secrets>;

export const connectionSecrets = z.object({
  s3: orNull(s3Secrets).meta({ description: 'The credentials of S3, or of what speaks S3.' }),
});
export type ConnectionSecrets = z.output<typeof connectionSecrets>;

export const connectionShape = z.object({
  id: z.string(),
  name: requiredName.meta({ description: 'What people call it.' }),
  provider_type: anyCase(PROVIDER_TYPES).meta({
    description: 's3 is S3 and whatever speaks S3; directory is one of the service. The others are not there yet.',
  }),
  metadata,
  sync_config: z.null().default(null).meta({ description: 'Nothing is synchronised yet: null.' }),
  ...baseFields,
});
export type Connection = z.output<typeof connectionShape>;

/** Refused of a provider that is not there yet, and without what it needs. */
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
