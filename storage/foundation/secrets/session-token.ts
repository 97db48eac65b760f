/**
 * Tokens of browser sessions and of one-time links: 256 random bits. Only the SHA-256 is stored: a slow hash would add nothing to this
 * entropy.
 */
import { hash, randomBytes } from 'node:crypto';

const TOKEN_BYTES = 32;

export function makeSessionToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url');
}

export function hashSessionToken(token: string): string {
  return hash('sha256', token, 'hex');
}
