/** Requests and answers of users. */
import { z } from 'zod';
import { anyCase, keyText, metadataMap } from '../../core/record.ts';
import { USER_TYPES } from '../../storage/models/user.ts';
import { type ListGrammar, listAnswer, listShape, textList } from '../http/list.ts';
import { TenantAnswer } from '../tenants/schema.ts';

export const CreateUser = z
  .object({
    type: anyCase(USER_TYPES),
    name: keyText.trim().nullish(),
    email: z.email().max(320).nullish(),
    roles: z.array(z.string()).nullish(),
  })
  .meta({ id: 'CreateUserRequest' });
export const UpdateUser = z
  .object({ name: keyText.trim().nullish(), metadata: metadataMap.nullish() })
  .meta({ id: 'UpdateUserRequest', example: { name: 'Ada' } });
export const RenameServiceAccount = z
  .object({ name: keyText.trim().min(1, { error: 'must not be blank' }) })
  .meta({ id: 'UpdateServiceAccountRequest', example: { name: 'Collector of events' } });
export const UpdateUserRoles = z
  .object({ roles: z.array(z.string()) })
  .meta({ id: 'UpdateUserRolesRequest', example: { roles: ['event_ingestor'] } });

export const UserAnswer = z
  .object({
    id: z.string(),
    name: z.string().nullable(),
    email: z.string().nullable(),
    type: z.enum(USER_TYPES),
    roles: z.array(z.string()).nullable(),
    metadata: metadataMap.nullable(),
    tenant: TenantAnswer.nullable(),
  })
  .meta({ id: 'UserResponse' });

export const UserFilter = listShape({
  user_ids: textList.nullish().meta({ description: 'Any of these users.' }),
  type: anyCase(USER_TYPES).nullish().meta({ description: 'People, or service accounts.' }),
  roles: textList.nullish().meta({ description: 'Who has any of these roles.' }),
}).meta({ id: 'UserFilter', example: { type: 'service_account', limit: 10 } });
export type UserFilter = z.output<typeof UserFilter>;
export const UserListAnswer = listAnswer(UserAnswer, 'ListUsersResponse');

export const userGrammar: ListGrammar = {
  columns: { id: 'string', name: 'string', email: 'string', type: 'string', created_at: 'date', updated_at: 'date' },
  metadata: true,
};
