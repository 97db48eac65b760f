/**
 * The keys under which credits move once (docs/rules/wallets.md, "The ledger"). What we move by ourselves, and what our callers ask for, share one
 * namespace: whoever could state a key of ours first would have a commit, a final invoice or a refund answered by another movement. So ours are made
 * here alone, begin with a word of their own, and no key of a caller begins with it.
 */
import type { z } from 'zod';
import { keyText } from '../record.ts';

/** Made by `ownKey`, or stated by a caller and checked: no other text is one. */
export type MovementKey = string & z.core.$brand<'MovementKey'>;

const OWN_KEY_PREFIX = 'farthing/';

export type KeyKind =
  /** Of a wallet that fills itself. */
  | 'auto_topup'
  /** What comes on top of what is bought, with the key of the purchase. */
  | 'bonus'
  /** What a change of a subscription gives back, with the id of its invoice. */
  | 'change'
  | 'convert'
  | 'credit_note'
  | 'expired'
  /** With the key of an application of a credit grant. */
  | 'grant'
  | 'initial'
  /** Credits of other invoices had paid a part of an invoice that is void. */
  | 'offset'
  /** What an invoice takes of a wallet, with the ids of both. */
  | 'invoice'
  /** An invoice takes credits that pay after taxes of a wallet; the key has the ids of both. */
  | 'invoice_after_tax'
  | 'payment'
  | 'refund'
  /** Of a request that states no key. */
  | 'request'
  | 'reservation'
  /** Prepaid credits that lines of an invoice give back. */
  | 'returned'
  /** What an invoice comes to below 0. */
  | 'rest'
  | 'terminate'
  | 'void';

/** What is free in them comes last, so that two never read alike. */
export function toOwnKey(kind: KeyKind, ...parts: readonly [string, ...string[]]): MovementKey {
  return `${OWN_KEY_PREFIX}${[kind, ...parts].join('/')}` as MovementKey;
}

/** Of a movement in several parts: that of one of them. */
export function toPartKey(key: MovementKey, part: string): MovementKey {
  return `${key}/${part}` as MovementKey;
}

/** By which a movement of ours is found, whenever it was made: keys of ours had no word of their own once. */
export function listOwnKeys(kind: KeyKind, ...parts: readonly [string, ...string[]]): readonly string[] {
  const key = toOwnKey(kind, ...parts);
  return [key, key.slice(OWN_KEY_PREFIX.length)];
}

/** Whether a wallet was filled by itself with this key, or it is of the bonus of that. */
export function isAutomatic(key: string): boolean {
  const automatic = toOwnKey('auto_topup', '');
  return key.startsWith(automatic) || key.startsWith(toOwnKey('bonus', automatic));
}

/** A key that a caller states. */
export const callersKey = keyText
  .refine((text) => !text.startsWith(OWN_KEY_PREFIX), {
    error: `must not begin with ${OWN_KEY_PREFIX}, as keys of movements that are made by themselves do`,
  })
  .brand<'MovementKey'>();
