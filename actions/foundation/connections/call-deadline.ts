/** Limits the time of a provider's call. */
import { ProviderError } from '../../../integrations/provider-error.ts';

/**
 * Maximum duration of a call to a provider, which may be several requests. The HTTP libraries only limit how long a connection is silent,
 * so an answer that arrives byte by byte would never end.
 */
export const CALL_MS_MAX = 120_000;

/** Maximum duration of one request of a call: each client has this time-out. */
export const REQUEST_MS_MAX = 30_000;

/** A call whose last request may still be at the provider. */
export class LateCall extends ProviderError {
  constructor(limit_ms: number) {
    super('wait', `no answer within ${limit_ms} ms`);
  }
}

/**
 * Throws a `LateCall` if the call takes longer. The call begins no further request (call-account.ts), but the last
 * one cannot be stopped, so its result is unknown; a later call requests it again with the same key.
 */
export async function callWithin<Result>(limit_ms: number, call: () => Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const end = () => reject(new LateCall(limit_ms));
    timer = setTimeout(end, limit_ms);
  });
  try {
    return await Promise.race([call(), late]);
  } finally {
    clearTimeout(timer);
  }
}
