/** Request and answer of the price parser. */
import { z } from 'zod';
import { PARSE_METHODS, parsedPricingShape } from '../../../core/catalog/parsing/record.ts';
import { checkCurrency } from '../../../core/foundation/money.ts';
import { anyCase, orDefault } from '../../../core/foundation/record.ts';

const DESCRIPTION_MAX = 20_000;

export const ParsePricing = z
  .object({
    description: z
      .string()
      .trim()
      .min(1)
      .max(DESCRIPTION_MAX)
      .meta({ description: 'Description of the charges in English prose, at most 20,000 characters.' }),
    currency: orDefault(z.string(), 'usd')
      .transform((currency) => checkCurrency(currency))
      .pipe(z.string())
      .meta({
        description:
          'Currency code (ISO 4217) of amounts without a currency and of `$`, case-insensitive. Default: usd.',
      }),
    method: orDefault(anyCase(['auto', ...PARSE_METHODS]), 'auto').meta({
      description:
        'Parser. `rules` uses rules only. `llm` uses the configured language model and is refused without one. `auto` uses the model if it is configured and answers, else rules. Default: auto.',
    }),
  })
  .meta({
    id: 'ParsePricingRequest',
    example: {
      description:
        'Pro: $29 per month plus 2 cents per API call after 1,000 free. 14-day free trial, 20% off when billed annually. Includes SSO.',
      currency: 'usd',
    },
  });

export const ParsePricingAnswer = parsedPricingShape
  .extend({
    method: z.enum(PARSE_METHODS).meta({ description: 'Parser that produced the answer.' }),
    fallback_reason: z
      .string()
      .nullable()
      .meta({ description: 'Reason why rules replaced the configured language model; null otherwise.' }),
  })
  .meta({ id: 'ParsePricingResponse' });
