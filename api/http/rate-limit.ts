/**
 * Limits requests per API key, and wrong keys per address, in windows of a minute. Each process counts in memory, so a limit costs no round
 * trip; with n processes a caller has up to n times the limit. The headers `RateLimit` and `RateLimit-Policy` report the remainder (the
 * IETF's draft of RateLimit header fields).
 */
import { isIPv6 } from 'node:net';
import type { Request } from 'express';
import type { Config } from '../../config.ts';
import { FarthingError } from '../../core/foundation/error.ts';
import { createLru } from '../../storage/foundation/lru.ts';

const WINDOW_SECONDS = 60;

type CountedWindow = { count: number; readonly ends_ms: number };
/** Maximum number of names (keys, users or addresses) per counter, which take some ten megabytes. */
const NAMES_MAX = 100_000;

/**
 * Counts per name; the first count of a name begins its window. Counting is synchronous, unlike in the libraries: cached reads arrive
 * thousands of times a second and await nothing else.
 */
class WindowCounter {
  readonly #windows = createLru<CountedWindow>(NAMES_MAX);

  count(name: string): CountedWindow {
    let window = this.find(name);
    if (!window) this.#windows.set(name, (window = { count: 0, ends_ms: performance.now() + WINDOW_SECONDS * 1000 }));
    window.count++;
    return window;
  }

  /** Finds the running window of a name; undefined if the name was not counted in the last minute. */
  find(name: string): CountedWindow | undefined {
    const window = this.#windows.get(name);
    return window && window.ends_ms > performance.now() ? window : undefined;
  }
}

type RateLimitSettings = Pick<Config, 'RATE_LIMIT_REQUESTS' | 'RATE_LIMIT_WRONG_KEYS'>;

/** Counts requests per key, and wrong keys and sign-ins per address. A limit of 0 means no limit. */
export class RateLimits {
  readonly #requests_max: number;
  readonly #wrong_keys_max: number;
  readonly #requests = new WindowCounter();
  readonly #wrongKeys = new WindowCounter();
  readonly #signings = new WindowCounter();

  constructor({ RATE_LIMIT_REQUESTS, RATE_LIMIT_WRONG_KEYS }: RateLimitSettings) {
    this.#requests_max = RATE_LIMIT_REQUESTS;
    this.#wrong_keys_max = RATE_LIMIT_WRONG_KEYS;
  }

  /** Counts a request; `name` identifies its API key, or the user of its token. Throws `too_many_requests` above the limit. */
  countRequest(name: string, response: { set(name: string, value: string): unknown }): void {
    const limit = this.#requests_max;
    if (limit === 0) return;
    const window = this.#requests.count(name);
    response.set('RateLimit-Policy', `"key";q=${limit};w=${WINDOW_SECONDS}`);
    response.set('RateLimit', `"key";r=${Math.max(0, limit - window.count)};t=${secondsLeft(window)}`);
    if (window.count > limit) throw tooMany('requests of this API key', limit, window);
  }

  /** Counts a sign-in or sign-up from this address, regardless of the claimed user. */
  countSigning(request: Request): void {
    const window = this.#signings.count(clientAddress(request));
    if (window.count > SIGN_INS_MAX) throw tooMany('sign-ins from this address', SIGN_INS_MAX, window);
  }

  /** Loads a key that is not cached, unless too many wrong keys came from this address. */
  async guarded<Found>(request: Request, load: () => Promise<Found>): Promise<Found> {
    const limit = this.#wrong_keys_max;
    if (limit === 0) return load();
    const address = clientAddress(request);
    const window = this.#wrongKeys.find(address);
    if (window && window.count >= limit) throw tooMany('wrong keys from this address', limit, window);
    try {
      return await load();
    } catch (error) {
      if (error instanceof FarthingError && error.http_status_code === 401) this.#wrongKeys.count(address);
      throw error;
    }
  }
}

/** Maximum number of sign-ins per address and minute. Each takes a tenth of a second of a core. */
const SIGN_INS_MAX = 60;

function secondsLeft({ ends_ms }: CountedWindow): number {
  // The result is limited to the window, because adding and subtracting instants may leave a rounding error.
  return Math.min(WINDOW_SECONDS, Math.max(1, Math.ceil((ends_ms - performance.now()) / 1000)));
}

function tooMany(what: string, limit: number, window: CountedWindow): FarthingError {
  const retry_after_seconds = secondsLeft(window);
  const message = `more than ${limit} ${what} in ${WINDOW_SECONDS} s: come again in ${retry_after_seconds} s`;
  return new FarthingError('too_many_requests', message, {
    details: { limit, window_seconds: WINDOW_SECONDS, retry_after_seconds },
  });
}

/** Returns the address to which a limit applies. An IPv6 host owns a whole /64, so the limit applies to its prefix. */
export function clientAddress({ ip = '' }: Pick<Request, 'ip'>): string {
  const plain = ip.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.split('::');
  const [first, last] = [splitGroups(head), splitGroups(tail ?? '')];
  const gap = tail === undefined ? [] : Array<string>(8 - first.length - last.length).fill('0');
  return [...first, ...gap, ...last]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}

function splitGroups(part: string): string[] {
  return part === '' ? [] : part.split(':');
}
