/** Requests and answers of sign-up and sign-in. */
import { z } from 'zod';
import { emailAddress, keyText, metadataMap, withoutEffect } from '../../../core/foundation/record.ts';
import { BillingDetails } from '../tenants/schema.ts';

const email = emailAddress.max(320).meta({
  description:
    'Email address for sign-in, at most 320 characters. It is case-insensitive and belongs to one user only.',
});
/** The minimum prevents guessing. The maximum bounds the cost of hashing, which could be an attack. */
export const newPassword = z
  .string()
  .min(8, { error: 'must have at least 8 characters' })
  .max(1024, { error: 'must have at most 1024 characters' })
  .meta({ description: 'Password, 8 to 1,024 characters. Only its hash is stored.' });

export const SignUp = z
  .object({
    email,
    password: newPassword,
    tenant_name: keyText.trim().nullish().meta({
      description: 'Name of the company, which stands on its invoices. Default: the domain of the email.',
    }),
    billing_details: BillingDetails.nullish().meta({
      description: 'Contact data of the company, which stands on its invoices. Default: none.',
    }),
    metadata: metadataMap.nullish(),
    token: withoutEffect,
  })
  .meta({
    id: 'SignUpRequest',
    example: { email: 'ada@example.com', password: 'correct horse battery', tenant_name: 'Example Inc.' },
  });

export const Login = z
  .object({
    email,
    password: z.string().min(1).max(1024).meta({ description: 'Password of the user.' }),
    environment_id: z.string().nullish().meta({
      description:
        'Environment to which the token is restricted. Without it, each request names one in X-Environment-ID.',
    }),
    token: withoutEffect,
  })
  .meta({ id: 'LoginRequest', example: { email: 'ada@example.com', password: 'correct horse battery' } });

export const AuthAnswer = z
  .object({
    token: z.string().meta({ description: 'Token for the header `Authorization: Bearer …`, valid for 30 days.' }),
    user_id: z.string().meta({ description: 'User that signed in.' }),
    tenant_id: z.string().meta({ description: 'Tenant (company) of the user.' }),
  })
  .meta({ id: 'AuthResponse' });
