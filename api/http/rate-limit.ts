/**
 * Limits requests per API key, and wrong keys per address, in windows of a minute. Each process counts in memory, so a limit costs no round
 * trip; with n processes a caller has up to n times the limit. The headers `RateLimit` and `RateLimit-Policy` report the remainder (the
 * IETF's draft of RateLimit header fields).
 */
import { isIPv6 } from 'node:net';
import type { Request } from 'express';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { Config } from '../../config.ts';
import { FarthingError } from '../../core/foundation/error.ts';
import { createLru } from '../../storage/foundation/lru.ts';

const WINDOW_SECONDS = 60;

/** Request count of a key in the current window. */
type KeyWindow = { count: number; readonly ends_ms: number };
/** Maximum number of keys tracked per process; some ten megabytes. */
const KEYS_MAX = 100_000;

type RateLimitSettings = Pick<Config, 'RATE_LIMIT_REQUESTS' | 'RATE_LIMIT_WRONG_KEYS'>;

export class RateLimits {
  readonly #requests: number;
  readonly #windows = createLru<KeyWindow>(KEYS_MAX);
  readonly #wrongKeys: RateLimiterMemory | null;
  readonly #signings = createLimiter(SIGN_INS_MAX)!;

  constructor({ RATE_LIMIT_REQUESTS, RATE_LIMIT_WRONG_KEYS }: RateLimitSettings) {
    this.#requests = RATE_LIMIT_REQUESTS;
    this.#wrongKeys = createLimiter(RATE_LIMIT_WRONG_KEYS);
  }

  /**
   * Counts a request of this key, or of this user with tokens; throws `too_many_requests` above the limit. Synchronous instead of the
   * library's promise: cached reads arrive thousands of times a second and await nothing else.
   */
  countRequest(name: string, response: { set(name: string, value: string): unknown }): void {
    const points = this.#requests;
    if (points === 0) return;
    const now_ms = performance.now();
    let window = this.#windows.get(name);
    if (window === undefined || window.ends_ms <= now_ms)
      this.#windows.set(name, (window = { count: 0, ends_ms: now_ms + WINDOW_SECONDS * 1000 }));
    window.count++;
    const seconds = secondsLeft({ msBeforeNext: window.ends_ms - now_ms });
    response.set('RateLimit-Policy', `"key";q=${points};w=${WINDOW_SECONDS}`);
    response.set('RateLimit', `"key";r=${Math.max(0, points - window.count)};t=${seconds}`);
    if (window.count > points) throw tooMany('requests of this API key', points, seconds);
  }

  /** Counts a sign-in or sign-up from this address, regardless of the claimed user. */
  async countSigning(request: Request): Promise<void> {
    const state = await this.#signings.consume(clientAddress(request)).catch(toLimiterState);
    if (state.consumedPoints > SIGN_INS_MAX)
      throw tooMany('sign-ins from this address', SIGN_INS_MAX, secondsLeft(state));
  }

  /** Loads a key that is not cached, unless too many wrong keys came from this address. */
  async guarded<Found>(request: Request, load: () => Promise<Found>): Promise<Found> {
    if (!this.#wrongKeys) return load();
    const address = clientAddress(request);
    const state = await this.#wrongKeys.get(address);
    const { points } = this.#wrongKeys;
    if (state && state.consumedPoints >= points)
      throw tooMany('wrong keys from this address', points, secondsLeft(state));
    try {
      return await load();
    } catch (error) {
      if (error instanceof FarthingError && error.http_status_code === 401) await this.#wrongKeys.penalty(address);
      throw error;
    }
  }
}

/** Per address and minute. Each sign-in takes a tenth of a second of a core. */
const SIGN_INS_MAX = 60;

/** 0 means no limit. */
function createLimiter(points: number): RateLimiterMemory | null {
  return points === 0 ? null : new RateLimiterMemory({ points, duration: WINDOW_SECONDS });
}

/** The library rejects with its state above the limit, and with an error on failure. */
function toLimiterState(rejection: unknown): RateLimiterRes {
  if (rejection instanceof RateLimiterRes) return rejection;
  throw rejection;
}

function secondsLeft({ msBeforeNext }: Pick<RateLimiterRes, 'msBeforeNext'>): number {
  // Adding and subtracting an instant may leave a rounding error.
  return Math.min(WINDOW_SECONDS, Math.max(1, Math.ceil(msBeforeNext / 1000)));
}

function tooMany(what: string, limit: number, retry_after_seconds: number): FarthingError {
  const message = `more than ${limit} ${what} in ${WINDOW_SECONDS} s: come again in ${retry_after_seconds} s`;
  return new FarthingError('too_many_requests', message, {
    details: { limit, window_seconds: WINDOW_SECONDS, retry_after_seconds },
  });
}

/** An IPv6 host owns a whole /64, so the limit applies to its prefix. */
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
