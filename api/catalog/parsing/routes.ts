/** Parses descriptions of prices into request bodies; nothing is saved. */
import { HourlyLimit } from '../../../actions/catalog/parsing/hourly-limit.ts';
import { type LanguageModel, parseDescription } from '../../../actions/catalog/parsing/parse-pricing.ts';
import { type Route, route } from '../../http/route.ts';
import type { Services } from '../../http/services.ts';
import { ParsePricing, ParsePricingAnswer } from './schema.ts';

export const aiRoutes: Route[] = [
  route({
    method: 'post',
    path: '/ai/pricing/parse',
    operation_id: 'parsePricing',
    summary: 'Parse a description of prices',
    description:
      'Returns request bodies and saves nothing. Each body is valid for its own operation; a reference to another body is the `ref` of ' +
      'that body instead of an id. `not_understood` and `assumptions` list the differences from the description.',
    tag: 'AI',
    access: 'ai:write',
    body: ParsePricing,
    success: 200,
    answer: ParsePricingAnswer,
    idempotency: 'reads',
    handle: ({ body }, { services, scope, now }) =>
      parseDescription(getLanguageModel(services), { ...body, tenant_id: scope.tenant_id, now }),
  }),
];

const models = new WeakMap<Services, LanguageModel>();

/** Returns the model object of the service: always the same one, because its `HourlyLimit` counts the requests. */
function getLanguageModel(services: Services): LanguageModel {
  const known = models.get(services);
  if (known !== undefined) return known;
  const { LLM_BASE_URL, LLM_API_KEY, LLM_MODEL, LLM_TIMEOUT_MS, LLM_REQUESTS_PER_HOUR } = services.config;
  const model =
    LLM_BASE_URL === undefined || LLM_MODEL === undefined
      ? null
      : {
          endpoint: { base_url: LLM_BASE_URL, api_key: LLM_API_KEY, model: LLM_MODEL, timeout_ms: LLM_TIMEOUT_MS },
          limit: new HourlyLimit(LLM_REQUESTS_PER_HOUR),
        };
  models.set(services, model);
  return model;
}
