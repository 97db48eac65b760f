/**
 * API keys: `sk_` or `pk_` and 26 random characters in base 32. A key is shown once and stored as its SHA-256: with 128 bits of
 * entropy a slow hash would add nothing.
 */
import { hash, randomBytes } from 'node:crypto';
import type { ApiKeyType } from '../../../core/foundation/access/role.ts';

const PREFIX: Record<ApiKeyType, string> = { private_key: 'sk', publishable_key: 'pk' };
const BASE32 = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

export function makeApiKey(type: ApiKeyType): string {
  let rest = BigInt(`0x${randomBytes(16).toString('hex')}`);
  let text = '';
  for (let i = 0; i < 26; i++) {
    text = BASE32[Number(rest % 32n)] + text;
    rest /= 32n;
  }
  return `${PREFIX[type]}_${text}`;
}

export function hashApiKey(key: string): string {
  return hash('sha256', key, 'hex');
}

/** Shows the first 5 characters and the last 2. */
export function maskApiKey(key: string): string {
  return key.length < 12 ? '***' : `${key.slice(0, 5)}***${key.slice(-2)}`;
}
