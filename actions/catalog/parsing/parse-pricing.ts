/**
 * Converts a description of prices to request bodies (docs/rules/parsing.md). A language model is used if one is configured. Rules are used
 * if there is none, if it gives no usable answer in time, or if the tenant has reached its limit. Nothing is saved.
 */

import { INSTRUCTIONS, parseModelAnswer } from '../../../core/catalog/parsing/from-model.ts';
import { parsePricing } from '../../../core/catalog/parsing/parse.ts';
import type { ParsedPricing, ParseMethod } from '../../../core/catalog/parsing/record.ts';
import { FarthingError, notAllowed } from '../../../core/foundation/error.ts';
import { compileExpression } from '../../../core/metering/expression.ts';
import { type ChatEndpoint, requestJson } from '../../../integrations/chat-completions.ts';
import type { HourlyLimit } from './hourly-limit.ts';

/** Language model that may read descriptions; null if none is configured. */
export type LanguageModel = { readonly endpoint: ChatEndpoint; readonly limit: HourlyLimit } | null;

type ParseRequest = {
  readonly description: string;
  readonly currency: string;
  readonly method: 'auto' | ParseMethod;
  readonly tenant_id: string;
  readonly now: Date;
};

type ParsedDescription = ParsedPricing & {
  readonly method: ParseMethod;
  readonly fallback_reason: string | null;
};

export async function parseDescription(model: LanguageModel, request: ParseRequest): Promise<ParsedDescription> {
  const { description, currency, method } = request;
  const byRules = (fallback_reason: string | null): ParsedDescription => ({
    ...parsePricing(description, { currency, compileExpression }),
    method: 'rules',
    fallback_reason,
  });
  if (method === 'rules') return byRules(null);
  if (model === null && method === 'auto') return byRules(null);
  try {
    return { ...(await parseWithModel(model, request)), method: 'llm', fallback_reason: null };
  } catch (error) {
    if (method === 'llm' || !(error instanceof FarthingError)) throw error;
    return byRules(error.message);
  }
}

async function parseWithModel(model: LanguageModel, request: ParseRequest): Promise<ParsedPricing> {
  const { description, currency, tenant_id, now } = request;
  if (model === null) throw notAllowed('method: no language model is configured', { field: 'method' });
  if (!model.limit.tryAcquire(tenant_id, now))
    throw new FarthingError('too_many_requests', 'the language model was asked as often as it may be in this hour');
  const user = `Where no currency is stated it is ${currency}.\n\n${description}`;
  return parseModelAnswer(await requestJson(model.endpoint, { system: INSTRUCTIONS, user }), compileExpression);
}
