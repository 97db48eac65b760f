/**
 * A connection has the credentials of a provider outside the service: a destination of exports (docs/rules/exports.md, "Connections"), or
 * an account of the tenant (docs/integrations/README.md). No response contains its secret.
 */
import { z } from 'zod';
import { anyCase, baseFields, metadata, orNull, requiredName } from '../../foundation/record.ts';
import { syncConfigShape } from './sync-config.ts';

/** Values of `provider_type` in the API. */
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

const CONNECTION_STATES = ['active', 'needs_attention'] as const;

/** Credentials of one provider. Its capability declares their shape. */
export type ProviderSecrets = Readonly<Record<string, unknown>>;
/** Credentials in a request, by provider. */
export type ConnectionSecrets = Readonly<Record<string, ProviderSecrets | null>>;

export const connectionShape = z.object({
  id: z.string(),
  name: requiredName.meta({ description: 'Display name of the connection.' }),
  provider_type: anyCase(PROVIDER_TYPES).meta({
    description:
      'Provider: `s3` is S3 or a compatible service, `directory` is a directory of this service. Providers that are not supported yet are refused.',
  }),
  metadata,
  sync_config: orNull(syncConfigShape).meta({
    description:
      'Records that are exchanged with the provider. Default: null, which means all that the provider supports.',
  }),
  connection_state: z.enum(CONNECTION_STATES).meta({
    description: 'State: `active`, or `needs_attention` if the provider is not called until somebody acts.',
  }),
  attention_reason: z
    .string()
    .nullable()
    .meta({ description: 'Reason of `needs_attention`, for people; null while the connection is active.' }),
  provider_account_id: z.string().nullable().meta({
    description: 'Id of the account at the provider; null if the provider names none or was not asked yet.',
  }),
  ...baseFields,
});
export type Connection = z.output<typeof connectionShape>;

/** Reason of `needs_attention` from the first to the last transaction of an archive. */
export const BEING_ARCHIVED_REASON = 'it is being archived';

export function isBeingArchived(connection: Pick<Connection, 'connection_state' | 'attention_reason'>): boolean {
  return connection.connection_state === 'needs_attention' && connection.attention_reason === BEING_ARCHIVED_REASON;
}
