/**
 * Secrets that must be read again, so that a hash is not enough. With a key in the settings they are sealed in Postgres
 * (AES-256-GCM), so that a backup contains none in clear text (docs/decisions/0022-tenant-isolation.md). Without a key they are
 * stored in clear text.
 *
 * A sealed text is `sealed:2:<key id>:<base64>`. The tenant, the environment and the id of its record are authenticated with it, so a
 * text that was copied to another record does not open. Earlier texts, `sealed:<base64>`, name no key and no record.
 */
import { createCipheriv, createDecipheriv, createHash, hash, randomBytes } from 'node:crypto';
import { FarthingError } from '../../../core/foundation/error.ts';

/** The record that has the secret. */
export type SecretOwner = { readonly tenant_id: string; readonly environment_id: string; readonly id: string };

export type SecretSealer = {
  /** False if secrets are stored in clear text. */
  readonly has_key: boolean;
  /** Returns the input if it is already sealed, or if there is no key. */
  seal(secret: string, owner: SecretOwner): string;
  /** Seals the secret again with the first key and in the newest form, unless the text already has both. */
  reseal(sealed_text: string, owner: SecretOwner): string;
  /** Returns the input if it was never sealed. */
  open(sealed_text: string, owner: SecretOwner): string;
};

const SEALED = 'sealed:';
const BOUND = 'sealed:2:';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID_LENGTH = 8;

type SealingKey = { readonly id: string; readonly bytes: Buffer };

/** Creates a sealer. The first key seals; secrets that were sealed with any of the keys can be opened. */
export function createSealer(key_texts: readonly string[]): SecretSealer {
  const keys = key_texts.map(deriveKey);
  const [first] = keys;
  const seal = (secret: string, owner: SecretOwner) =>
    first === undefined || secret === '' || isSealed(secret) ? secret : encrypt(secret, first, owner);
  return {
    has_key: first !== undefined,
    seal,
    reseal(sealed_text, owner) {
      if (first === undefined || sealed_text.startsWith(`${BOUND}${first.id}:`)) return sealed_text;
      return seal(this.open(sealed_text, owner), owner);
    },
    open(sealed_text, owner) {
      if (!isSealed(sealed_text)) return sealed_text;
      for (const key of keys) {
        const secret = decrypt(sealed_text, key, owner);
        if (secret !== null) return secret;
      }
      throw new FarthingError(
        'system_error',
        'a sealed secret does not open: its key is not in SECRETS_KEYS, it is damaged, or it belongs to another record',
      );
    },
  };
}

export function isSealed(text: string): boolean {
  return text.startsWith(SEALED);
}

function deriveKey(text: string): SealingKey {
  const bytes = createHash('sha256').update(text).digest();
  const id = hash('sha256', Buffer.concat([Buffer.from('key id'), bytes]), 'hex').slice(0, KEY_ID_LENGTH);
  return { id, bytes };
}

function encrypt(secret: string, { id, bytes }: SealingKey, owner: SecretOwner): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', bytes, nonce).setAAD(toAssociatedData(owner));
  const sealed = Buffer.concat([nonce, cipher.update(secret), cipher.final(), cipher.getAuthTag()]);
  return `${BOUND}${id}:${sealed.toString('base64')}`;
}

/** Decrypts a text; null if it was sealed with another key or for another record, or is damaged. */
function decrypt(sealed_text: string, { id, bytes: key_bytes }: SealingKey, owner: SecretOwner): string | null {
  const is_bound = sealed_text.startsWith(BOUND);
  const prefix = is_bound ? `${BOUND}${id}:` : SEALED;
  if (!sealed_text.startsWith(prefix)) return null;
  const bytes = Buffer.from(sealed_text.slice(prefix.length), 'base64');
  try {
    const decipher = createDecipheriv('aes-256-gcm', key_bytes, bytes.subarray(0, NONCE_BYTES));
    if (is_bound) decipher.setAAD(toAssociatedData(owner));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]).toString();
  } catch {
    return null;
  }
}

function toAssociatedData({ tenant_id, environment_id, id }: SecretOwner): Buffer {
  return Buffer.from(JSON.stringify([tenant_id, environment_id, id]));
}
