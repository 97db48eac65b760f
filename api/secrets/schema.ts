/** Requests and answers of API keys. */
import { z } from 'zod';
import { anyCase, keyText, timestampText } from '../../core/record.ts';
import { USER_TYPES } from '../../storage/models/user.ts';
import { type ListGrammar, listAnswer, listShape } from '../http/list.ts';

export const CreateApiKey = z
  .object({
    name: keyText.trim().min(1, { error: 'must not be blank' }),
    type: anyCase(['private_key', 'publishable_key']),
    expires_at: timestampText.nullish(),
    service_account_id: z.string().nullish(),
  })
  .meta({ id: 'CreateAPIKeyRequest' });

export const SecretAnswer = z
  .object({
    id: z.string(),
    name: z.string(),
    type: z.string(),
    provider: z.string(),
    display_id: z.string(),
    roles: z.array(z.string()).nullable(),
    user_type: z.enum(USER_TYPES).nullable(),
    user_id: z.string().nullable(),
    service_account_name: z.string().nullable(),
    expires_at: z.iso.datetime().nullable(),
    last_used_at: z.iso.datetime().nullable(),
    status: z.string(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'SecretResponse' });

/** The key itself is shown here and nowhere else. */
export const CreateApiKeyAnswer = z
  .object({ secret: SecretAnswer, api_key: z.string() })
  .meta({ id: 'CreateAPIKeyResponse' });

export const SecretFilter = listShape({
  user_id: z.string().optional().meta({ description: 'Keys of this user or service account.' }),
});
export const SecretListAnswer = listAnswer(SecretAnswer, 'ListSecretsResponse');

export const secretGrammar: ListGrammar = {
  columns: { id: 'string', name: 'string', type: 'string', created_at: 'date', updated_at: 'date' },
};
