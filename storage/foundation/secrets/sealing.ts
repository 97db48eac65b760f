/**
 * Secrets that must be read again, so that a hash is not enough. With a key in the settings they are sealed in Postgres
 * (AES-256-GCM), so that a backup contains none in clear text (docs/decisions/0022-tenant-isolation.md). Without a key they are
 * stored in clear text.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { FarthingError } from '../../../core/foundation/error.ts';

export type SecretSealer = {
  /** Returns the input if it is already sealed, or if there is no key. */
  seal(secret: string): string;
  /** Seals with the first key, unless it already is. */
  reseal(sealed_text: string): string;
  /** Returns the input if it was never sealed. */
  open(sealed_text: string): string;
};

const SEALED = 'sealed:';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The first key seals; secrets sealed with any of the keys can be opened. */
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
