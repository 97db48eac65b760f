/** Limits the time of a provider's call. */
import { ProviderError } from '../../../integrations/provider-error.ts';

/**
 * Longest call of a provider, which may be several requests. The libraries limit the silence of a connection, so an answer that arrives byte by
 * byte would never end.
 */
export const CALL_MS_MAX = 120_000;

/**
 * Throws a `ProviderError` of the class `wait` if the call takes longer. The call cannot be stopped: its result is unknown, and is requested
 * again with the same key.
 */
export async function callWithin<Result>(limit_ms: number, call: () => Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const end = () => reject(new ProviderError('wait', `no answer within ${limit_ms} ms`));
    timer = setTimeout(end, limit_ms);
  });
  try {
    return await Promise.race([call(), late]);
  } finally {
    clearTimeout(timer);
  }
}
