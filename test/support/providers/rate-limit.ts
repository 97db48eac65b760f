import { listCapable } from '../../../integrations/find-capability.ts';

/** Lifts the rate limit of a provider: a fake limits no requests, so a test does not wait for it. */
export function liftRateLimit(provider_type: string): void {
  Object.assign(listCapable('account')[provider_type]!, { requests_per_second: 1_000 });
}
