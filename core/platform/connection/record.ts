/**
 * A connection has the credentials of a provider outside the service: a destination of exports (docs/rules/exports.md, "Connections"), or
 * an account of the tenant (docs/integrations/README.md). No response contains its secret.
 */
import { z } from 'zod';
import { baseFields, metadata, orNull, requiredName } from '../../foundation/record.ts';
import { syncConfigShape } from './sync-config.ts';

/** Providers that the API has always named. Those that are supported are in the registry (integrations/index.ts). */
export const NAMED_PROVIDERS = [
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

const CONNECTION_STATES = ['active', 'needs_attention', 'being_archived'] as const;

/** Credentials of one provider. Its capability declares their shape. */
export type ProviderSecrets = Readonly<Record<string, unknown>>;
/** Credentials in a request, by provider. */
export type ConnectionSecrets = Readonly<Record<string, ProviderSecrets | null>>;

export const connectionShape = z.object({
  id: z.string(),
  name: requiredName.meta({ description: 'Display name of the connection.' }),
  provider_type: z.string().meta({
    description:
      'Provider: `s3` is S3 or a compatible service, `directory` is a directory of this service. Providers that are not supported yet are refused.',
  }),
  metadata,
  sync_config: orNull(syncConfigShape).meta({
    description:
      'Records that are exchanged with the provider. Default: null, which means all that the provider supports.',
  }),
  connection_state: z.enum(CONNECTION_STATES).meta({
    description:
      'State: `active`; `needs_attention` if the provider is not called until somebody acts; `being_archived` between the transactions of an archive, which a repeated request completes.',
  }),
  attention_reason: z
    .string()
    .nullable()
    .meta({ description: 'Reason why the connection is not active, for people; null while it is.' }),
  provider_account_id: z.string().nullable().meta({
    description: 'Id of the account at the provider; null if the provider names none or was not asked yet.',
  }),
  ...baseFields,
});
export type Connection = z.output<typeof connectionShape>;

/** Whether an archive has begun. Then no payment or refund begins, and the connection never becomes active again. */
export function isBeingArchived({ connection_state }: Pick<Connection, 'connection_state'>): boolean {
  return connection_state === 'being_archived';
}

/** Describes why a connection that is not active cannot be called, as the end of a sentence. */
export function describeStopped(connection: Pick<Connection, 'connection_state' | 'attention_reason'>): string {
  return isBeingArchived(connection) ? 'is being archived' : `needs attention (${connection.attention_reason})`;
}
