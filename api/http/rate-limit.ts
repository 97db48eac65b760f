/**
 * How often a caller may come: requests of one API key, and wrong keys of one address, in windows of a minute. Each process
 * counts by itself, in memory: with n of them a caller has up to n times as much, and a limit costs no round trip. The answer
 * says what is left in the headers `RateLimit` and `RateLimit-Policy` (the IETF's draft of RateLimit header fields).
 */
import { isIPv6 } from 'node:net';
import type { Request, Response } from 'express';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { Config } from '../../config.ts';
import { FarthingError } from '../../core/error.ts';

const WINDOW_SECONDS = 60;

type Settings = Pick<Config, 'RATE_LIMIT_REQUESTS' | 'RATE_LIMIT_WRONG_KEYS'>;

export class RateLimits {
  readonly #requests: RateLimiterMemory | null;
  readonly #wrongKeys: RateLimiterMemory | null;

  constructor({ RATE_LIMIT_REQUESTS, RATE_LIMIT_WRONG_KEYS }: Settings) {
    this.#requests = limiterOf(RATE_LIMIT_REQUESTS);
    this.#wrongKeys = limiterOf(RATE_LIMIT_WRONG_KEYS);
  }

  /** One more request of this key; throws `too_many_requests` when it has had its share. */
  async countRequest(secret_id: string, response: Response): Promise<void> {
    if (!this.#requests) return;
    const { points } = this.#requests;
    const state = await this.#requests.consume(secret_id).catch(stateOf);
    const seconds = secondsOf(state);
    response.set('RateLimit-Policy', `"key";q=${points};w=${WINDOW_SECONDS}`);
    response.set('RateLimit', `"key";r=${state.remainingPoints};t=${seconds}`);
    if (state.consumedPoints > points) throw tooMany('requests of this API key', points, seconds);
  }

  /** Before a key is looked up that nobody has seen lately. */
  async refuseGuessing(request: Request): Promise<void> {
    const state = await this.#wrongKeys?.get(addressOf(request));
    if (!state || state.consumedPoints < this.#wrongKeys!.points) return;
    throw tooMany('wrong API keys from this address', this.#wrongKeys!.points, secondsOf(state));
  }

  async countWrongKey(request: Request): Promise<void> {
    await this.#wrongKeys?.penalty(addressOf(request));
  }
}

/** 0 is no limit. */
function limiterOf(points: number): RateLimiterMemory | null {
  return points === 0 ? null : new RateLimiterMemory({ points, duration: WINDOW_SECONDS });
}

/** The library refuses with its state, and fails with an error. */
function stateOf(refused: unknown): RateLimiterRes {
  if (refused instanceof RateLimiterRes) return refused;
  throw refused;
}

function secondsOf({ msBeforeNext }: RateLimiterRes): number {
  return Math.max(1, Math.ceil(msBeforeNext / 1000));
}

function tooMany(what: string, limit: number, retry_after_seconds: number): FarthingError {
  const message = `more than ${limit} ${what} in ${WINDOW_SECONDS} s: come again in ${retry_after_seconds} s`;
  return new FarthingError('too_many_requests', message, {
    details: { limit, window_seconds: WINDOW_SECONDS, retry_after_seconds },
  });
}

/** Whoever has an address of IPv6 has a whole /64 of them. */
export function addressOf({ ip = '' }: Pick<Request, 'ip'>): string {
  const plain = ip.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  if (!isIPv6(plain)) return plain;
  const [head = '', tail] = plain.split('::');
  const [first, last] = [groupsOf(head), groupsOf(tail ?? '')];
  const gap = tail === undefined ? [] : Array<string>(8 - first.length - last.length).fill('0');
  return [...first, ...gap, ...last]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}

function groupsOf(part: string): string[] {
  return part === '' ? [] : part.split(':');
}
