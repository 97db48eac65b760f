/**
 * Turns faults of QuickBooks into `ProviderError`s (developer.intuit.com, "Error handling" and "Error codes"). A fault
 * may have status 200. Authentication errors have field names in lower case.
 */
import { ProviderError } from '../provider-error.ts';
import type { ProviderAnswer } from '../send-request.ts';

type FaultError = { readonly code?: string; readonly message?: string; readonly detail?: string };
type AnswerFacts = Pick<ProviderAnswer, 'status' | 'retry_after_seconds'>;
type QuickBooksFault = { readonly type: string; readonly errors: readonly FaultError[] };

export const DUPLICATE_NAME = '6240';
export const DUPLICATE_NUMBER = '6140';
export const STALE = '5010';
const MISSING = '610';

/** Pause after too many requests, as QuickBooks documents it, unless the answer has a `Retry-After` header. */
const LIMIT_PAUSE_SECONDS = 60;
const LIMITED = '3001';
/** Error codes for a refused token, a user without rights to the company, and a company whose subscription has ended. */
const UNAUTHORIZED_CODES = new Set(['3100', '3200', '6190']);
const UNAUTHORIZED_TYPES = new Set(['authentication', 'authenticationfault', 'authorization', 'authorizationfault']);

/** Reads the fault of an answer; null without one. */
export function readFault(body: unknown): QuickBooksFault | null {
  const fault = lowerFields(lowerFields(body)['fault']);
  if (Object.keys(fault).length === 0) return null;
  const errors = Array.isArray(fault['error']) ? fault['error'].map((error) => lowerFields(error) as FaultError) : [];
  return { type: typeof fault['type'] === 'string' ? fault['type'] : '', errors };
}

function lowerFields(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return {};
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name.toLowerCase(), field]));
}

export function buildFaultError(
  { status, retry_after_seconds }: AnswerFacts,
  { type, errors }: QuickBooksFault,
): ProviderError {
  const [{ code: padded = '', message = '', detail = '' } = {}] = errors;
  const code = padded.replace(/^0+(?=\d)/, '');
  const details = { provider_code: code === '' ? null : code };
  if (status === 429 || code === LIMITED)
    return new ProviderError('wait', describe(code, message), {
      ...details,
      retry_after_seconds: retry_after_seconds ?? LIMIT_PAUSE_SECONDS,
    });
  // The detail of the fault quotes the token, so the message omits it.
  if (status === 401 || status === 403 || UNAUTHORIZED_CODES.has(code) || UNAUTHORIZED_TYPES.has(type.toLowerCase()))
    return new ProviderError('person', describe(code, message), { ...details, is_unauthorized: true });
  const isTransient = status >= 500 || type === 'SystemFault' || code === STALE;
  return new ProviderError(isTransient ? 'wait' : 'person', describe(code, message, detail), {
    ...details,
    retry_after_seconds,
  });
}

/** Builds the error of an answer that is no JSON of QuickBooks, such as a page of a gateway. */
export function buildStatusError({ status, retry_after_seconds }: AnswerFacts): ProviderError {
  if (status === 429)
    return new ProviderError('wait', 'QuickBooks: too many requests', {
      retry_after_seconds: retry_after_seconds ?? LIMIT_PAUSE_SECONDS,
    });
  if (status === 401 || status === 403)
    return new ProviderError('person', `QuickBooks: status ${status}`, { is_unauthorized: true });
  const isRefused = status >= 400 && status < 500 && status !== 408;
  return new ProviderError(
    isRefused ? 'person' : 'wait',
    `QuickBooks: status ${status}, and no answer that can be read`,
    { retry_after_seconds },
  );
}

function describe(code: string, message: string, detail = ''): string {
  const text = detail === '' || detail === message ? message : `${message}: ${detail}`;
  return `QuickBooks: ${text === '' ? 'a fault without a text' : text}${code === '' ? '' : ` (${code})`}`;
}

export function isFault(error: unknown, code: string): boolean {
  return error instanceof ProviderError && error.provider_code === code;
}

export function isMissing(error: unknown): boolean {
  return isFault(error, MISSING);
}
