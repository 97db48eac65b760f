/** What descriptions in words become: bodies of requests, of which nothing is saved. */
import { HourlyLimit } from '../../actions/pricing-parse/hourly-limit.ts';
import { type LanguageModel, parseDescription } from '../../actions/pricing-parse/parse-pricing.ts';
import { type Route, route } from '../http/route.ts';
import type { Services } from '../services.ts';
import { ParsePricing, ParsePricingAnswer } from './schema.ts';

export const aiRoutes: Route[] = [
  route({
    method: 'post',
    path: '/ai/pricing/parse',
    operation_id: 'parsePricing',
    summary: 'Turn a description of prices into plans, prices, meters and entitlements',
    description:
      'Nothing is saved. Each body is one that its own operation takes; where it names another one it has the `ref` of that one in the ' +
      'place of an id. What was not understood is told, and so is what had to be assumed.',
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

/** One for the life of the service: it counts how often it was asked. */
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
