/** Error of an answer that is no JSON of the provider, such as a page of a gateway. */
import { ProviderError } from './provider-error.ts';
import type { ProviderAnswer } from './send-request.ts';

/** Pause after too many requests, unless the answer has a `Retry-After` header. */
export const LIMIT_PAUSE_SECONDS = 60;

type AnswerStatus = Pick<ProviderAnswer, 'status' | 'retry_after_seconds'>;

export function buildStatusError(provider_name: string, { status, retry_after_seconds }: AnswerStatus): ProviderError {
  if (status === 429)
    return new ProviderError('wait', `${provider_name}: too many requests`, {
      retry_after_seconds: retry_after_seconds ?? LIMIT_PAUSE_SECONDS,
    });
  if (status === 401 || status === 403)
    return new ProviderError('person', `${provider_name}: status ${status}`, { is_unauthorized: true });
  const isRefused = status >= 400 && status < 500 && status !== 408;
  return new ProviderError(
    isRefused ? 'person' : 'wait',
    `${provider_name}: status ${status}, and no answer that can be read`,
    { retry_after_seconds },
  );
}
