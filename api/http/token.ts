/**
 * Tokens of signed-in users: JSON Web Tokens, valid for thirty days, signed with HS256 by JWT_SECRET or, without it, by a random key of the
 * installation. They name the user and optionally one environment. The user's roles are read on each request (docs/permissions.md).
 */
import { decodeJwt, errors, jwtVerify, SignJWT } from 'jose';
import { z } from 'zod';
import { DAY_SECONDS } from '../../core/foundation/time/durations.ts';
import type { Database } from '../../storage/foundation/stores.ts';
import { loadTokenKey } from '../../storage/models/operations/installation.ts';
import { unauthenticated } from './errors.ts';
import type { Services } from './services.ts';

export type Claims = {
  readonly user_id: string;
  readonly tenant_id: string;
  readonly environment_id: string | null;
  /** Unix time in seconds, with its fraction. */
  readonly issued_at: number;
};

export type Signing = Pick<Services, 'config' | 'postgres'>;

const ALGORITHM = 'HS256';
const DAYS = 30;

const Payload = z.object({
  user_id: z.string().min(1),
  tenant_id: z.string().min(1),
  environment_id: z.string().nullish(),
  iat: z.number(),
});

export async function makeToken(signing: Signing, claims: Omit<Claims, 'issued_at'>, now: Date): Promise<string> {
  const { user_id, tenant_id, environment_id } = claims;
  // With milliseconds, so that a token ends by a new password of the same second, too.
  const issued_s = now.getTime() / 1000;
  return new SignJWT({ user_id, tenant_id, ...(environment_id === null ? {} : { environment_id }) })
    .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
    .setIssuedAt(issued_s)
    .setExpirationTime(Math.floor(issued_s) + DAYS * DAY_SECONDS)
    .sign(await loadSigningKey(signing));
}

/** Verifies a token and returns its claims, or throws 401. Checks signature, algorithm and expiry; a token without an expiry is refused. */
export async function verifyToken(signing: Signing, token: string, now: Date): Promise<Claims> {
  const key = await loadSigningKey(signing);
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: [ALGORITHM],
      currentDate: now,
      requiredClaims: ['exp', 'iat'],
    });
    return toClaims(payload);
  } catch (error) {
    throw unauthenticated(error instanceof errors.JWTExpired ? 'the token has expired' : 'the token is not valid');
  }
}

/** Claims of a token whose signature was not checked; undefined if it is no token. */
export function readClaims(token: string): Claims | undefined {
  try {
    return toClaims(decodeJwt(token));
  } catch {
    return undefined;
  }
}

function toClaims(payload: unknown): Claims {
  const { user_id, tenant_id, environment_id, iat } = Payload.parse(payload);
  return { user_id, tenant_id, environment_id: environment_id || null, issued_at: iat };
}

const signingKeys = new WeakMap<Database, Uint8Array>();

export async function loadSigningKey({ config, postgres }: Signing): Promise<Uint8Array> {
  if (config.JWT_SECRET !== undefined) return new TextEncoder().encode(config.JWT_SECRET);
  const known = signingKeys.get(postgres);
  if (known) return known;
  const key = new Uint8Array(await loadTokenKey(postgres));
  signingKeys.set(postgres, key);
  return key;
}
