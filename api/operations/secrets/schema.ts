import { z } from 'zod';
import { anyCase, keyText, timestampText } from '../../../core/foundation/record.ts';
import { USER_TYPES } from '../../../storage/models/foundation/user.ts';
import { type ListGrammar, listAnswer, listShape } from '../../http/list.ts';

export const CreateApiKey = z
  .object({
    name: keyText
      .trim()
      .min(1, { error: 'must not be blank' })
      .meta({ description: 'Name of the key, for people; must not be blank.' }),
    type: anyCase(['private_key', 'publishable_key']).meta({
      description: "private_key has the rights of its owner's roles; publishable_key may only send events.",
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

const SecretAnswer = z
  .object({
    id: z.string(),
    name: z.string().meta({ description: 'Name of the key, for people.' }),
    type: z.string().meta({ description: 'private_key, or publishable_key, which may only send events.' }),
    provider: z.string().meta({ description: 'Issuer of the key; equal for all keys.' }),
    display_id: z.string().meta({ description: 'First and last characters of the key, for recognition.' }),
    roles: z.array(z.string()).nullable().meta({ description: 'Current roles of its owner.' }),
    user_type: z.enum(USER_TYPES).nullable().meta({ description: 'Type of the owner: person or program.' }),
    user_id: z.string().nullable().meta({ description: 'Owner of the key. The key acts with its rights.' }),
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
