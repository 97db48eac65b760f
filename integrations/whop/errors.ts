/** Turns refused requests into `ProviderError`s (docs.whop.com/developer/troubleshooting). */
import type { ProviderError } from '../provider-error.ts';
import { buildAnswerError } from '../send-json.ts';
import type { ProviderAnswer } from '../send-request.ts';

type WhopErrorBody = { readonly code?: unknown; readonly type?: unknown; readonly message?: unknown };

export function buildWhopError(answer: ProviderAnswer): ProviderError {
  const { code, type, message } = parseBody(answer.body);
  const provider_code = [code, type].find((one): one is string => typeof one === 'string') ?? null;
  const text = typeof message === 'string' ? message : '';
  return buildAnswerError(answer, {
    provider_name: 'Whop',
    text: provider_code === null || text === '' ? text : `${text} (${provider_code})`,
    provider_code,
  });
}

function parseBody(body: unknown): WhopErrorBody {
  const error = (body as { readonly error?: unknown } | null | undefined)?.error;
  return typeof error === 'object' && error !== null ? error : {};
}
