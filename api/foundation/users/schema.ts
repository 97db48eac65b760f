import { z } from 'zod';
import { anyCase, clearedMap, emailAddress, keyText, metadataMap } from '../../../core/foundation/record.ts';
import { USER_TYPES } from '../../../storage/models/foundation/user.ts';
import { type ListGrammar, listAnswer, listShape, textList } from '../../http/list.ts';
import { newPassword } from '../auth/schema.ts';
import { TenantAnswer } from '../tenants/schema.ts';

const name = { description: 'Display name.' };
const roles = z.array(z.string());

export const CreateUser = z
  .object({
    type: anyCase(USER_TYPES).meta({
      description: 'user is a person, service_account a program. The type cannot change later.',
    }),
    name: keyText.trim().nullish().meta(name),
    email: z
      .email()
      .max(320)
      .nullish()
      .meta({ description: 'Email address. Required for a user, and unique; a service account has none.' }),
    roles: roles
      .nullish()
      .meta({ description: 'Ids of roles (`GET /rbac/roles`). A service account needs at least one.' }),
  })
  .meta({ id: 'CreateUserRequest' });
export const UpdateUser = z
  .object({
    name: keyText
      .trim()
      .nullable()
      .transform((text) => text ?? '')
      .pipe(z.string())
      .optional()
      .meta({ description: 'Display name; null clears it.' }),
    metadata: clearedMap.optional(),
    email: emailAddress.max(320).nullish().meta({
      description:
        'Email address for sign-in, together with password, of a user that has none yet, such as that of the first start. An email does not change later; null has no effect.',
    }),
    password: newPassword.optional().meta(newPassword.meta()!),
    current_password: z
      .string()
      .max(1024)
      .nullish()
      .meta({ description: 'Current password. Required with a new password, unless the user has none yet.' }),
  })
  .meta({ id: 'UpdateUserRequest', example: { name: 'Ada' } });
export const RenameServiceAccount = z
  .object({ name: keyText.trim().min(1, { error: 'must not be blank' }).meta(name) })
  .meta({ id: 'UpdateServiceAccountRequest', example: { name: 'Collector of events' } });
export const UpdateUserRoles = z
  .object({ roles: roles.meta({ description: 'Ids of roles (`GET /rbac/roles`), which replace the previous ones.' }) })
  .meta({ id: 'UpdateUserRolesRequest', example: { roles: ['event_ingestor'] } });

export const UserAnswer = z
  .object({
    id: z.string(),
    name: z.string().nullable().meta({ description: 'Display name; null if it was never set.' }),
    email: z.string().nullable().meta({ description: 'Email address; null for a service account.' }),
    type: z.enum(USER_TYPES).meta({ description: 'user is a person, service_account a program.' }),
    roles: roles.nullable().meta({ description: 'Ids of roles. `GET /rbac/roles` lists their permissions.' }),
    metadata: metadataMap.nullable(),
    tenant: TenantAnswer.nullable().meta({ description: 'Tenant of the user.' }),
  })
  .meta({ id: 'UserResponse' });

/** The only answer that contains the password. */
export const CreateUserAnswer = z
  .object({
    ...UserAnswer.shape,
    password: z
      .string()
      .nullable()
      .meta({ description: 'First password of a user, not shown again; null for a service account.' }),
  })
  .meta({ id: 'CreateUserResponse' });

export const UserFilter = listShape({
  user_ids: textList.nullish().meta({ description: 'Matches any of these users.' }),
  type: anyCase(USER_TYPES).nullish().meta({ description: 'Matches people or service accounts only.' }),
  roles: textList.nullish().meta({ description: 'Matches users with any of these roles.' }),
}).meta({ id: 'UserFilter', example: { type: 'service_account', limit: 10 } });
export type UserFilter = z.output<typeof UserFilter>;
export const UserListAnswer = listAnswer(UserAnswer, 'ListUsersResponse');

export const userGrammar: ListGrammar = {
  columns: { id: 'string', name: 'string', email: 'string', type: 'string', created_at: 'date', updated_at: 'date' },
  metadata: true,
};
