/** Turns refusals of HubSpot into `ProviderError`s (developers.hubspot.com, "Error handling", "API usage guidelines and limits"). */
import { z } from 'zod';
import { HOUR_SECONDS } from '../../core/foundation/time/durations.ts';
import { ProviderError } from '../provider-error.ts';
import type { ProviderAnswer } from '../send-request.ts';

/** Pauses after too many requests. HubSpot counts them in ten seconds and in a day. */
const BURST_PAUSE_SECONDS = 10;
const DAILY_PAUSE_SECONDS = HOUR_SECONDS;

const refusal = z.object({
  message: z.string().catch(''),
  category: z.string().catch(''),
  policyName: z.string().catch(''),
  errors: z
    .array(z.object({ message: z.string().catch(''), context: z.record(z.string(), z.unknown()).catch({}) }))
    .catch([]),
});

export function buildRefusal({ status, body, retry_after_seconds }: ProviderAnswer): ProviderError {
  const { message, category, policyName, errors } = refusal.catch(() => refusal.parse({})).parse(body ?? {});
  const texts = [message, ...errors.map((error) => error.message)].filter((text, index, all) => {
    return text !== '' && all.indexOf(text) === index;
  });
  const text = `HubSpot: ${texts.join('; ') || `status ${status}, and no answer that can be read`}`;
  const details = { provider_code: category === '' ? null : category };
  if (status === 429)
    return new ProviderError('wait', text, {
      ...details,
      retry_after_seconds:
        retry_after_seconds ?? (policyName.toUpperCase().includes('DAILY') ? DAILY_PAUSE_SECONDS : BURST_PAUSE_SECONDS),
    });
  if (status === 401) return new ProviderError('person', text, { ...details, is_unauthorized: true });
  if (status === 403) {
    const scopes = errors.flatMap(({ context }) => Object.values(context).flat().map(String));
    const missing = scopes.length === 0 ? text : `${text} (${[...new Set(scopes)].join(', ')})`;
    return new ProviderError('person', missing, { ...details, is_unauthorized: true });
  }
  if (status === 404) return new ProviderError('person', text, { ...details, is_missing: true });
  return new ProviderError(isTransient(status) ? 'wait' : 'person', text, { ...details, retry_after_seconds });
}

/** Whether the request may succeed later: 423 is a locked record, 477 an account that is being moved. */
function isTransient(status: number): boolean {
  return status < 400 || status >= 500 || status === 408 || status === 423 || status === 477;
}
