/**
 * Idempotency keys of credit movements (docs/rules/wallets.md, "The ledger"). Automatic movements and requests share one namespace. A
 * caller that took an automatic key first would replace a commit, a final invoice or a refund by another movement. So automatic keys are
 * built only here and have a prefix that is refused in requests.
 */
import type { z } from 'zod';
import { keyText } from '../../foundation/record.ts';

/** Built by `toOwnKey`, or parsed from a request by `callersKey`. */
export type MovementKey = string & z.core.$brand<'MovementKey'>;

const OWN_KEY_PREFIX = 'farthing/';

export type KeyKind =
  /** An automatic top-up. */
  | 'auto_topup'
  /** Bonus credits; the key contains the key of the purchase. */
  | 'bonus'
  /** Credit of a subscription change; the key contains the id of its invoice. */
  | 'change'
  /** A purchase whose request has an idempotency key for its checkout only; the key contains that key. */
  | 'checkout'
  | 'convert'
  | 'credit_note'
  | 'expired'
  /** A refund of a payment that failed after its invoice was voided. */
  | 'failed_refund'
  /** A credit grant; the key contains the key of the grant's application. */
  | 'grant'
  | 'initial'
  /** A void returns credits of other invoices that were offset against the voided invoice. */
  | 'offset'
  /** An invoice uses credits of a wallet before taxes; the key contains the ids of both. */
  | 'invoice'
  /** An invoice uses credits of a wallet after taxes; the key contains the ids of both. */
  | 'invoice_after_tax'
  | 'payment'
  | 'refund'
  /** A request without an idempotency key. */
  | 'request'
  | 'reservation'
  /** Prepaid credits that return because an invoice credits lines that they had paid. */
  | 'returned'
  /** Credits for the negative total of an invoice. */
  | 'rest'
  | 'terminate'
  | 'void';

/** Builds a key. Parts with free text come last, so that no two keys collide. */
export function toOwnKey(kind: KeyKind, ...parts: readonly [string, ...string[]]): MovementKey {
  return `${OWN_KEY_PREFIX}${[kind, ...parts].join('/')}` as MovementKey;
}

/** Key of one part of a movement that has several parts. */
export function toPartKey(key: MovementKey, part: string): MovementKey {
  return `${key}/${part}` as MovementKey;
}

/** Keys under which an automatic movement may be stored. Keys of older movements have no prefix. */
export function listOwnKeys(kind: KeyKind, ...parts: readonly [string, ...string[]]): readonly string[] {
  const key = toOwnKey(kind, ...parts);
  return [key, key.slice(OWN_KEY_PREFIX.length)];
}

/** Whether the key is that of an automatic top-up or of its bonus. */
export function isAutomatic(key: string): boolean {
  const automatic = toOwnKey('auto_topup', '');
  return key.startsWith(automatic) || key.startsWith(toOwnKey('bonus', automatic));
}

export const callersKey = keyText
  .refine((text) => !text.startsWith(OWN_KEY_PREFIX), {
    error: `must not begin with ${OWN_KEY_PREFIX}, as keys of movements that are made by themselves do`,
  })
  .brand<'MovementKey'>();
