/** Requests and answers of connections. */
import { z } from 'zod';
import { OAUTH_PROVIDERS } from '../../../actions/delivery/connections/oauth.ts';
import { connectionSecrets, PROVIDER_TYPES } from '../../../actions/delivery/connections/secret-shapes.ts';
import { anyCase, keyText, orNull, requiredKey } from '../../../core/foundation/record.ts';
import { connectionShape } from '../../../core/platform/connection/record.ts';
import { syncConfigShape } from '../../../core/platform/connection/sync-config.ts';
import { BASE_COLUMNS, type ListGrammar, listShape, matchAny, Pagination } from '../../http/list.ts';

const { name, metadata, sync_config } = connectionShape.shape;
export const providerType = anyCase(PROVIDER_TYPES as [string, ...string[]]).meta(
  connectionShape.shape.provider_type.meta()!,
);
const provider_type = providerType;
const encrypted_secret_data = orNull(connectionSecrets).meta({
  description: 'Credentials of the provider, in an object of its name. They are stored encrypted and never returned.',
});

export const CreateConnection = z.object({ name, provider_type, encrypted_secret_data, metadata, sync_config }).meta({
  id: 'CreateConnectionRequest',
  example: {
    name: 'Warehouse',
    provider_type: 's3',
    encrypted_secret_data: {
      s3: { aws_access_key_id: 'AKIAIOSFODNN7EXAMPLE', aws_secret_access_key: 'the secret of this key' },
    },
  },
});

export const UpdateConnection = z
  .object({
    name: name.optional(),
    metadata: metadata.unwrap().optional(),
    sync_config: syncConfigShape.nullish().meta({
      description: 'Records that are exchanged; null means all that the provider supports. Default: unchanged.',
    }),
    encrypted_secret_data: connectionSecrets
      .nullish()
      .meta({ description: 'New credentials, which replace the previous ones. Default: unchanged.' }),
  })
  .meta({ id: 'UpdateConnectionRequest', example: { name: 'Warehouse of finance' } });

export const ConnectionTestAnswer = z
  .object({
    success: z.literal(true).meta({ description: 'Always true; a failure is an error.' }),
    provider_account_id: z
      .string()
      .nullable()
      .meta({ description: 'Id of the account; null if the provider names none.' }),
    name: z.string().nullable().meta({ description: 'Name of the account; null if the provider names none.' }),
  })
  .meta({ id: 'TestConnectionResponse' });

const provider = anyCase(OAUTH_PROVIDERS as [string, ...string[]]).meta({
  description: 'Provider whose access the owner of the account grants in a browser.',
});
const CODE_MAX = 4_096;
const returned = (parameter: string) =>
  keyText
    .optional()
    .meta({ description: `Parameter \`${parameter}\` that the provider adds to \`redirect_uri\`, if any.` });

export const InitiateOAuth = z
  .object({
    provider,
    name,
    credentials: z.record(z.string(), z.string()).meta({
      description:
        'Credentials of the app, as in `POST /connections`: with `redirect_uri`, but without tokens and account. They are stored encrypted.',
    }),
    metadata,
    sync_config,
  })
  .meta({
    id: 'InitiateOAuthRequest',
    example: {
      provider: 'quickbooks',
      name: 'Books',
      credentials: {
        client_id: 'the client id of the app',
        client_secret: 'the client secret of the app',
        environment: 'sandbox',
        redirect_uri: 'https://example.com/oauth/return',
        income_account_id: '79',
        webhook_verifier_token: 'the verifier token of the webhook',
      },
    },
  });

export const InitiateOAuthAnswer = z
  .object({
    oauth_url: z.string().meta({ description: 'Page of the provider on which the owner grants access.' }),
    session_id: z.string().meta({ description: 'Id of the sign-in at the provider, for `POST /oauth/complete`.' }),
  })
  .meta({ id: 'InitiateOAuthResponse' });

export const CompleteOAuth = z
  .object({
    provider,
    session_id: requiredKey.meta({ description: '`session_id` from the answer to `POST /oauth/init`.' }),
    code: z
      .string()
      .min(1)
      .max(CODE_MAX)
      .meta({ description: 'Parameter `code` that the provider adds to `redirect_uri`.' }),
    state: requiredKey.meta({
      description: 'Parameter `state` that the provider adds to `redirect_uri`. A wrong value is refused with 403.',
    }),
    realm_id: returned('realmId'),
    organization_id: returned('organization_id'),
    organization_name: returned('organization_name'),
    location: returned('location'),
    accounts_server: returned('accounts-server'),
  })
  .meta({
    id: 'CompleteOAuthRequest',
    example: {
      provider: 'quickbooks',
      session_id: 'oauth_01JZ8K3M5N7P9Q1R3S5T7V9W1X',
      code: 'AB11727371819NcT0ijxpCTQxAbHqUZCnxUmCQEWyhLB1bXnDL',
      state: 'the state of the return',
      realm_id: '4620816365037572030',
    },
  });

export const CompleteOAuthAnswer = z
  .object({
    success: z.literal(true).meta({ description: 'Always true; a failure is an error.' }),
    connection_id: z.string().meta({ description: 'Connection to the account.' }),
  })
  .meta({ id: 'CompleteOAuthResponse' });

export const ConnectionAnswer = connectionShape.extend({ provider_type }).meta({ id: 'ConnectionResponse' });
export const ConnectionListAnswer = z
  .object({
    connections: z.array(ConnectionAnswer).meta({ description: 'Page of the connections that meet the conditions.' }),
    ...Pagination.shape,
  })
  .meta({ id: 'ListConnectionsResponse' });

export const ConnectionFilter = listShape({
  connection_ids: matchAny('connections'),
  provider_type: provider_type.optional().meta({ description: 'Provider of the connection.' }),
}).meta({ id: 'ConnectionFilter', example: { provider_type: 'stripe' } });
export type ConnectionFilter = z.output<typeof ConnectionFilter>;

export const connectionGrammar: ListGrammar = {
  columns: { ...BASE_COLUMNS, name: 'string', provider_type: 'string' },
};
