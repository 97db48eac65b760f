/**
 * Secrets that must be read again, so that they cannot be kept as a hash: with a key of the settings they are in Postgres sealed
 * (AES-256-GCM), so that a backup of it holds none (docs/decisions/0022-tenant-isolation.md). Without one they are there as they are.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { FarthingError } from '../core/error.ts';

export type SecretSealer = {
  /** The same where it is sealed already, or where there is no key. */
  seal(secret: string): string;
  /** With the first key, unless it is that already. */
  reseal(sealed_text: string): string;
  /** Of what was never sealed, itself. */
  open(sealed_text: string): string;
};

const SEALED = 'sealed:';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The first of the keys seals; what another of them has sealed can be opened. */
export function createSealer(keys: readonly string[]): SecretSealer {
  const ciphers = keys.map((key) => createHash('sha256').update(key).digest());
  const [first] = ciphers;
  const seal = (secret: string) =>
    first === undefined || secret === '' || secret.startsWith(SEALED) ? secret : sealed(secret, first);
  return {
    seal,
    reseal(sealed_text) {
      if (first === undefined || (sealed_text.startsWith(SEALED) && opened(sealed_text, first) !== null))
        return sealed_text;
      return seal(this.open(sealed_text));
    },
    open(sealed_text) {
      if (!sealed_text.startsWith(SEALED)) return sealed_text;
      for (const key of ciphers) {
        const secret = opened(sealed_text, key);
        if (secret !== null) return secret;
      }
      throw new FarthingError('system_error', 'a secret was sealed with a key that is not in SECRETS_KEYS');
    },
  };
}

function sealed(secret: string, key: Buffer): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  const bytes = Buffer.concat([nonce, cipher.update(secret), cipher.final(), cipher.getAuthTag()]);
  return SEALED + bytes.toString('base64');
}

function opened(sealed_text: string, key: Buffer): string | null {
  const bytes = Buffer.from(sealed_text.slice(SEALED.length), 'base64');
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString();
  } catch {
    return null;
  }
}
