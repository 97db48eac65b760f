/** Signed addresses that need no key and expire. They are signed like user tokens (token.ts), each for one subject. */
import { jwtVerify, SignJWT } from 'jose';
import { z } from 'zod';
import { FarthingError } from '../../core/foundation/error.ts';
import { loadSigningKey, type Signing } from './token.ts';

type LinkClaim = {
  /** JWT audience. A link for one subject opens no other, and is no user token. */
  readonly subject: string;
  readonly tenant_id: string;
  readonly environment_id: string;
  readonly id: string;
  /** Number of the part, if the document has several. */
  readonly part?: number | undefined;
};

const ALGORITHM = 'HS256';
const Payload = z.object({
  tenant_id: z.string().min(1),
  environment_id: z.string().min(1),
  id: z.string().min(1),
  part: z.int().optional(),
});

export async function makeLink(
  signing: Signing,
  { subject, ...payload }: LinkClaim,
  { seconds, now }: { seconds: number; now: Date },
): Promise<string> {
  return new SignJWT(payload)
    .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
    .setAudience(subject)
    .setExpirationTime(Math.floor(now.getTime() / 1000) + seconds)
    .sign(await loadSigningKey(signing));
}

/** Returns the payload of a link for one of the subjects, or throws 404, so a guessed token reveals nothing. */
export async function verifyLink(
  signing: Signing,
  token: string,
  { subjects, now }: { subjects: string[]; now: Date },
): Promise<z.output<typeof Payload> & { subject: string }> {
  const key = await loadSigningKey(signing);
  try {
    const checks = { algorithms: [ALGORITHM], audience: subjects, currentDate: now, requiredClaims: ['exp', 'aud'] };
    const { payload } = await jwtVerify(token, key, checks);
    return { ...Payload.parse(payload), subject: String(payload.aud) };
  } catch {
    throw new FarthingError(
      'not_found',
      'the address is wrong, or was good for a while alone: the document is not found',
    );
  }
}
