/** Requests and answers of browser sessions. */
import { z } from 'zod';
import { keyText } from '../../../core/foundation/record.ts';
import { ENVIRONMENT_TYPES } from '../../../storage/models/foundation/environment.ts';
import { Login, newPassword } from '../../foundation/auth/schema.ts';

type SessionInput =
  | { readonly link_token: string }
  | {
      readonly link_token?: undefined;
      readonly email: string;
      readonly password: string;
      readonly sign_up: boolean;
      readonly tenant_name: string | null | undefined;
    };

export const CreateSession = z
  .object({
    email: Login.shape.email.nullish().meta({ description: 'Email of the user. Required without link_token.' }),
    password: Login.shape.password.nullish().meta({
      description: 'Password of the user. Required with email; at least 8 characters to sign up.',
    }),
    sign_up: z
      .boolean()
      .default(false)
      .meta({ description: 'Whether a tenant is created with this email and password for its first user.' }),
    tenant_name: keyText
      .trim()
      .nullish()
      .meta({ description: 'Name of the new company, with sign_up. Default: the domain of the email.' }),
    link_token: z.string().min(1).max(200).nullish().meta({
      description: 'Token of the one-time link that `npm start` prints, instead of email and password.',
    }),
  })
  .transform((input, context): SessionInput => {
    const { email, password, sign_up, tenant_name, link_token } = input;
    const refuse = (field: string, message: string) => {
      context.addIssue({ code: 'custom', path: [field], message });
      return z.NEVER;
    };
    if (tenant_name && !sign_up) return refuse('tenant_name', 'is for sign_up');
    if (link_token) {
      const other = (['email', 'password'] as const).find((field) => input[field]) ?? (sign_up ? 'sign_up' : undefined);
      return other === undefined ? { link_token } : refuse(other, 'does not go with link_token');
    }
    if (!email) return refuse('email', 'is required');
    if (!password) return refuse('password', 'is required');
    const checked = sign_up ? newPassword.safeParse(password) : undefined;
    if (checked?.success === false) return refuse('password', checked.error.issues[0]!.message);
    return { email, password, sign_up, tenant_name };
  })
  .meta({ id: 'CreateSessionRequest', example: { email: 'ada@example.com', password: 'correct horse battery' } });
export type CreateSession = z.output<typeof CreateSession>;

const time = z.iso.datetime();
const session = {
  id: z.string().meta({ description: 'Id of the session.' }),
  created_at: time.meta({ description: 'Time of the sign-in.' }),
  expires_at: time.meta({
    description:
      'End of the session if it is not used again: 12 hours after its last use, at most 7 days after the sign-in.',
  }),
};

export const SessionAnswer = z
  .object({
    session: z
      .object(session)
      .meta({ id: 'CurrentSession' })
      .nullable()
      .meta({ description: 'Session of the request; null for an API key or token.' }),
    user: z
      .object({
        id: z.string().meta({ description: 'Id of the user.' }),
        email: z.string().nullable().meta({
          description: 'Email for sign-in; null until the user sets one with `PUT /users/me`.',
        }),
        name: z.string().nullable().meta({ description: 'Display name; null if it was never set.' }),
        roles: z.array(z.string()).meta({ description: 'Ids of roles (`GET /rbac/roles`).' }),
      })
      .meta({ id: 'SessionUser', description: 'User of the session.' }),
    tenant: z
      .object({
        id: z.string().meta({ description: 'Id of the tenant.' }),
        name: z.string().meta({ description: 'Name of the company.' }),
      })
      .meta({ id: 'SessionTenant', description: 'Tenant of the user.' }),
    environments: z
      .array(
        z
          .object({
            id: z
              .string()
              .meta({ description: 'Id for the header X-Environment-ID, or for the query parameter environment_id.' }),
            name: z.string().meta({ description: 'Display name.' }),
            type: z.enum(ENVIRONMENT_TYPES).meta({ description: 'Type of the environment.' }),
            test_clock_id: z
              .string()
              .nullable()
              .meta({ description: 'Test clock of the environment; null without one.' }),
          })
          .meta({ id: 'SessionEnvironment' }),
      )
      .meta({
        description: 'Environments of the tenant, the oldest first. Empty without the permission environment:read.',
      }),
    permissions: z
      .record(z.string(), z.array(z.string()))
      .meta({ description: 'Actions that the roles allow, by entity: read, write, correct.' }),
  })
  .meta({ id: 'SessionResponse' });

export const SessionListAnswer = z
  .object({
    items: z
      .array(
        z
          .object({
            ...session,
            last_used_at: time.meta({ description: 'Time of the last request, to within five minutes.' }),
            user_agent: z.string().nullable().meta({ description: 'Browser that signed in, as it described itself.' }),
            is_current: z.boolean().meta({ description: 'Whether this request belongs to the session.' }),
          })
          .meta({ id: 'UserSession' }),
      )
      .meta({ description: 'Sessions of the user that have not ended, the last used one first.' }),
  })
  .meta({ id: 'ListSessionsResponse' });

export const SignInOptions = z
  .object({ sign_up_open: z.boolean().meta({ description: 'Whether anybody may sign up (setting `SIGN_UP`).' }) })
  .meta({ id: 'SignInOptionsResponse' });
