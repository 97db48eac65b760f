import { z } from 'zod';
import { anyCase, keyText, requiredName, timestampText } from '../../../core/foundation/record.ts';
import { USER_TYPES } from '../../../storage/models/foundation/user.ts';
import { providerType } from '../../delivery/connections/schema.ts';
import { type ListGrammar, listAnswer, listShape } from '../../http/list.ts';

export const CreateApiKey = z
  .object({
    name: keyText
      .trim()
      .min(1, { error: 'must not be blank' })
      .meta({ description: 'Name of the key, for people; must not be blank.' }),
    type: anyCase(['private_key', 'publishable_key']).meta({
      description: "private_key has the rights of the owner's roles; publishable_key may only send events.",
    }),
    expires_at: timestampText
      .nullish()
      .meta({ description: 'Instant from which the key is refused; must be in the future. Default: never.' }),
    // An empty text, such as an unset variable, would create a key with all rights of the caller.
    service_account_id: z
      .string()
      .min(1, { error: 'must not be empty: leave it out for a key of your own' })
      .nullish()
      .meta({ description: 'Owner of the key. Default: the caller. An empty text is refused.' }),
    environment_id: z
      .string()
      .min(1, { error: 'must not be empty: leave it out for this environment' })
      .nullish()
      .meta({
        description:
          'Environment of the key. Default: the environment of the request. Only a super_admin may name another one.',
      }),
  })
  .meta({ id: 'CreateAPIKeyRequest' });

export const SecretAnswer = z
  .object({
    id: z.string(),
    name: z.string().meta({ description: 'Name of the key, for people.' }),
    type: z.string().meta({
      description:
        'private_key, publishable_key, which may only send events, or integration for credentials of a provider.',
    }),
    provider: z
      .string()
      .meta({ description: 'Issuer of the key, equal for all keys, or the provider of credentials.' }),
    display_id: z
      .string()
      .meta({ description: 'First and last characters of the key, for recognition; the account of credentials.' }),
    roles: z.array(z.string()).nullable().meta({ description: 'Current roles of the owner of the key.' }),
    user_type: z.enum(USER_TYPES).nullable().meta({ description: 'Type of the owner: person or program.' }),
    user_id: z.string().nullable().meta({ description: 'Owner of the key. The key has the rights of the owner.' }),
    environment_id: z.string().nullable().meta({ description: 'The only environment in which the key acts.' }),
    service_account_name: z
      .string()
      .nullable()
      .meta({ description: 'Name of the service account; null if the owner is a person.' }),
    expires_at: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'Instant from which the key is refused; null if never.' }),
    last_used_at: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'Approximate time of the last use; null before the first.' }),
    status: z.string().meta({ description: 'published, or deleted after it is revoked.' }),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'SecretResponse' });

/** The only answer that contains the key itself. */
export const CreateApiKeyAnswer = z
  .object({
    secret: SecretAnswer.meta({ description: 'The stored record of the key.' }),
    api_key: z.string().meta({ description: 'The key itself. It is not shown again.' }),
  })
  .meta({ id: 'CreateAPIKeyResponse' });

export const SecretFilter = listShape({
  user_id: z.string().optional().meta({ description: 'Matches keys of this user or service account.' }),
});
export const SecretListAnswer = listAnswer(SecretAnswer, 'ListSecretsResponse');

export const secretGrammar: ListGrammar = {
  columns: { id: 'string', name: 'string', type: 'string', created_at: 'date', updated_at: 'date' },
};

export const IntegrationProvider = z.object({
  provider: z.string().min(1).meta({ description: 'Name of the provider.', example: 's3' }),
});

export const CreateIntegration = z
  .object({
    name: requiredName.meta({ description: 'Display name of the connection.' }),
    provider: providerType.meta({ description: 'Provider, equal to the one in the path.' }),
    credentials: z
      .record(keyText, z.string().max(4_000))
      .meta({ description: 'Credentials of the provider, by the keys of `encrypted_secret_data` of its connections.' }),
  })
  .meta({
    id: 'CreateIntegrationRequest',
    example: {
      name: 'Store',
      provider: 's3',
      credentials: { aws_access_key_id: 'AKIAIOSFODNN7EXAMPLE', aws_secret_access_key: 'the secret of this key' },
    },
  });

export const LinkedIntegrationsAnswer = z
  .object({ providers: z.array(z.string()).meta({ description: 'Providers whose credentials are stored.' }) })
  .meta({ id: 'LinkedIntegrationsResponse' });
