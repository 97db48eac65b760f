/** Parts that the pushes of all providers share. */
import type { PushedCustomer } from './account.ts';

/** Whether the provider may have the record: an earlier attempt to create it may have taken effect. */
export function hasBegun({
  key_age_seconds,
  is_key_renewed,
}: Pick<PushedCustomer, 'key_age_seconds' | 'is_key_renewed'>): boolean {
  return key_age_seconds > 0 || is_key_renewed;
}

/** Shortens a text to a number of characters, for providers that count characters and not code units. */
export function cutCharacters(text: string, length_max: number): string {
  return [...text].slice(0, length_max).join('');
}
