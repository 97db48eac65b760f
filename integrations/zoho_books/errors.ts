/**
 * Turns refusals of Zoho Books into `ProviderError`s (zoho.com/books/api/v3/errors). A refusal has a `code` other than 0,
 * also with status 200.
 */
import { z } from 'zod';
import { HOUR_SECONDS } from '../../core/foundation/time/durations.ts';
import { ProviderError } from '../provider-error.ts';
import type { ProviderAnswer } from '../send-request.ts';

/** Zoho sends no `Retry-After`. The limit per minute is the usual one. */
const LIMIT_PAUSE_SECONDS = 60;
const DAY_LIMIT_PAUSE_SECONDS = HOUR_SECONDS;
/** Code of the limit of requests per day. 44 is that of the limit per minute, 1070 that of simultaneous requests. */
const DAY_LIMITED = '45';
const LIMITED = new Set(['44', DAY_LIMITED, '1070']);
/** Codes for a refused token, a missing right or scope, and an organization to which the user does not belong. */
const UNAUTHORIZED = new Set(['14', '57', '6041']);
const INTERNAL = '1000';
const MISSING = '1002';
/** Code of a path that the API does not have. */
const NO_SUCH_PATH = '5';

const refusalShape = z.object({ code: z.string(), message: z.string().optional() });

/** Builds the error of an answer; null if the answer is a success. */
export function buildAnswerError({ status, body, retry_after_seconds }: ProviderAnswer): ProviderError | null {
  const { data } = refusalShape.safeParse(body);
  const isSuccess = status >= 200 && status < 300;
  if (isSuccess && data?.code === '0') return null;
  const code = data?.code ?? '';
  const message = describe(status, code, data?.message);
  const details = { provider_code: code === '' ? null : code, retry_after_seconds };
  if (status === 429 || LIMITED.has(code)) {
    const pause = code === DAY_LIMITED ? DAY_LIMIT_PAUSE_SECONDS : LIMIT_PAUSE_SECONDS;
    return new ProviderError('wait', message, { ...details, retry_after_seconds: retry_after_seconds ?? pause });
  }
  if (status === 401 || status === 403 || UNAUTHORIZED.has(code))
    return new ProviderError('person', message, { ...details, is_unauthorized: true });
  if (code === MISSING || (status === 404 && code !== '' && code !== NO_SUCH_PATH))
    return new ProviderError('person', message, { ...details, is_missing: true });
  // A success or a 404 without a code is the page of a gateway, not an answer of the API.
  const isForeign = code === '' && (isSuccess || status === 404);
  const isTransient = status >= 500 || status === 408 || code === INTERNAL || isForeign;
  return new ProviderError(isTransient ? 'wait' : 'person', message, details);
}

function describe(status: number, code: string, message = ''): string {
  if (code === '') return `Zoho Books: status ${status}, and no answer that can be read`;
  return `Zoho Books: ${message === '' ? 'a refusal without a text' : message} (${code})`;
}
