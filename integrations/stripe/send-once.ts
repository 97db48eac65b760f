/**
 * Requests that create one record, however often they are repeated. The idempotency key prevents a second record while
 * Stripe remembers it. If the key is old or unusable, the record is searched for first.
 */
import type { Stripe } from 'stripe';
import { HOUR_SECONDS } from '../../core/foundation/time/durations.ts';
import { ProviderError } from '../provider-error.ts';
import { isKeyUnusable, isRefused } from './errors.ts';

/**
 * Age of a key from which the record is searched for first. Stripe may forget a key after 24 hours
 * (docs.stripe.com/api/idempotent_requests). One hour leaves a margin, because the database clock may have been set back.
 */
const SEARCHED_FROM_SECONDS = HOUR_SECONDS;
/** Maximum number of keys for one step. If Stripe can no longer accept a key, the next one is tried. */
const KEYS_MAX = 5;
/** Maximum number of listed records; beyond it the search is used. */
const LISTED_MAX = 1_000;
/** Tolerance for a difference between the clocks of the two services. */
const CLOCK_SLACK_SECONDS = HOUR_SECONDS;

type KeyedStep<Result> = {
  readonly key: string;
  readonly key_age_seconds: number;
  readonly is_key_renewed: boolean;
  /** Finds the result of an earlier attempt; null if it had no effect. */
  find(): Promise<Result | null>;
  send(options: { idempotencyKey: string }): Promise<Result>;
};

export async function sendOnce<Result>({
  key,
  key_age_seconds,
  is_key_renewed,
  find,
  send,
}: KeyedStep<Result>): Promise<Result> {
  if (is_key_renewed || key_age_seconds >= SEARCHED_FROM_SECONDS) {
    const earlier = await find();
    if (earlier !== null) return earlier;
  }
  for (let number = 1; ; number++) {
    try {
      return await send({ idempotencyKey: number === 1 ? key : `${key}:${number}` });
    } catch (error) {
      if (number === KEYS_MAX || !isKeyUnusable(error)) throw error;
      const earlier = await find();
      if (earlier !== null) return earlier;
    }
  }
}

/** Changes a state once. Stripe refuses a change that a person has made already. */
export async function changeOnce<Result>(step: KeyedStep<Result>): Promise<Result> {
  try {
    return await sendOnce(step);
  } catch (error) {
    const changed = isRefused(error) ? await step.find() : null;
    if (changed === null) throw error;
    return changed;
  }
}

/** Earliest creation, in Unix seconds, of a record that an attempt with this key created. */
export function toCreatedSince(key_created_at: Date): number {
  return Math.floor(key_created_at.getTime() / 1_000) - CLOCK_SLACK_SECONDS;
}

type Listed = { readonly id: string; readonly metadata?: Stripe.Metadata | null };
type MetadataSearch<Found> = {
  list(): AsyncIterable<Found>;
  /** Search for records of this type; null if Stripe offers none. */
  readonly search: ((query: string) => AsyncIterable<Found>) | null;
  accepts(found: Found): boolean;
};

/**
 * Finds a record by its metadata. A list is complete at once, a search index only later, so the search serves only for
 * long lists.
 */
export async function findByMetadata<Found extends Listed>(
  [name, value]: readonly [string, string],
  { list, search, accepts }: MetadataSearch<Found>,
): Promise<Found | null> {
  let count = 0;
  for await (const found of list()) {
    if (found.metadata?.[name] === value && accepts(found)) return found;
    if (++count === LISTED_MAX) break;
  }
  if (count < LISTED_MAX) return null;
  if (search === null)
    throw new ProviderError('person', `more than ${LISTED_MAX} records were listed to find ${value}`);
  for await (const found of search(`metadata['${name}']:'${value.replace(/['\\]/g, '\\$&')}'`))
    if (accepts(found)) return found;
  return null;
}
