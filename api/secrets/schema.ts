/** Requests and answers of API keys. */
import { z } from 'zod';
import { anyCase, keyText, timestampText } from '../../core/record.ts';
import { USER_TYPES } from '../../storage/models/user.ts';
import { type ListGrammar, listAnswer, listShape } from '../http/list.ts';

export const CreateApiKey = z
  .object({
    name: keyText.trim().min(1, { error: 'must not be blank' }).meta({ description: 'What people call it.' }),
    type: anyCase(['private_key', 'publishable_key']).meta({
      description: 'private_key may do what the roles of its owner allow; publishable_key may only send events.',
    }),
    expires_at: timestampText
      .nullish()
      .meta({ description: 'From when on it is refused, in the future; never when absent.' }),
    // A text that is empty, as of a variable that is not set, would make a key with all that the caller may do.
    service_account_id: z
      .string()
      .min(1, { error: 'must not be empty: leave it out for a key of your own' })
      .nullish()
      .meta({ description: 'The owner of the key; the caller when absent.' }),
    environment_id: z
      .string()
      .min(1, { error: 'must not be empty: leave it out for this environment' })
      .nullish()
      .meta({
        description: 'Where the key acts; in the environment of the request when absent. Another is for a super_admin.',
      }),
  })
  .meta({ id: 'CreateAPIKeyRequest' });

export const SecretAnswer = z
  .object({
    id: z.string(),
    name: z.string().meta({ description: 'What people call it.' }),
    type: z.string().meta({ description: 'private_key, or publishable_key, which may only send events.' }),
    provider: z.string().meta({ description: 'Who made the key; the same of all keys.' }),
    display_id: z.string().meta({ description: 'The beginning and the end of the key, to know it by.' }),
    roles: z.array(z.string()).nullable().meta({ description: 'Those of its owner, as they are now.' }),
    user_type: z.enum(USER_TYPES).nullable().meta({ description: 'Whether its owner is a person or a program.' }),
    user_id: z.string().nullable().meta({ description: 'The owner, as whom the key acts.' }),
    environment_id: z.string().nullable().meta({ description: 'The one environment in which the key acts.' }),
    service_account_name: z.string().nullable().meta({ description: 'Null when the owner is a person.' }),
    expires_at: z.iso.datetime().nullable().meta({ description: 'From when on it is refused; null is never.' }),
    last_used_at: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'About when it was last taken; null before the first time.' }),
    status: z.string().meta({ description: 'published, or deleted once it is revoked.' }),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'SecretResponse' });

/** The key itself is shown here and nowhere else. */
export const CreateApiKeyAnswer = z
  .object({
    secret: SecretAnswer.meta({ description: 'What is kept of the key.' }),
    api_key: z.string().meta({ description: 'The key itself: it is never shown again.' }),
  })
  .meta({ id: 'CreateAPIKeyResponse' });

export const SecretFilter = listShape({
  user_id: z.string().optional().meta({ description: 'Keys of this user or service account.' }),
});
export const SecretListAnswer = listAnswer(SecretAnswer, 'ListSecretsResponse');

export const secretGrammar: ListGrammar = {
  columns: { id: 'string', name: 'string', type: 'string', created_at: 'date', updated_at: 'date' },
};
