/** Requests and answers of signing up and signing in. */
import { z } from 'zod';
import { keyText, metadataMap, withoutEffect } from '../../core/record.ts';

const email = z.email().max(320).meta({ description: 'With which the user signs in; of one user alone, in any case.' });
/** Long enough that it is no guess, and not so long that hashing it is an attack. */
export const newPassword = z
  .string()
  .min(8, { error: 'must have at least 8 characters' })
  .max(1024, { error: 'must have at most 1024 characters' })
  .meta({ description: 'At least 8 characters. It is kept as a hash and never shown.' });

export const SignUp = z
  .object({
    email,
    password: newPassword,
    tenant_name: keyText
      .trim()
      .nullish()
      .meta({ description: 'The name of the company; the domain of the email when absent.' }),
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
    password: z.string().min(1).max(1024).meta({ description: 'The password of this user.' }),
    environment_id: z.string().nullish().meta({
      description: 'Makes a token for this environment alone; else X-Environment-ID names one with each request.',
    }),
    token: withoutEffect,
  })
  .meta({ id: 'LoginRequest', example: { email: 'ada@example.com', password: 'correct horse battery' } });

export const AuthAnswer = z
  .object({
    token: z.string().meta({ description: 'Goes into the header `Authorization: Bearer …`; good for thirty days.' }),
    user_id: z.string().meta({ description: 'Who has signed in.' }),
    tenant_id: z.string().meta({ description: 'The company that the user belongs to.' }),
  })
  .meta({ id: 'AuthResponse' });
