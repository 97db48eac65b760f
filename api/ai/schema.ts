/** Requests and answers of the parser of prices. */
import { z } from 'zod';
import { checkCurrency } from '../../core/money.ts';
import { PARSE_METHODS, parsedPricingShape } from '../../core/pricing-parse/record.ts';
import { anyCase, orDefault } from '../../core/record.ts';

const DESCRIPTION_MAX = 20_000;

export const ParsePricing = z
  .object({
    description: z
      .string()
      .trim()
      .min(1)
      .max(DESCRIPTION_MAX)
      .meta({ description: 'What is charged, in English, as people write it.' }),
    currency: orDefault(z.string(), 'usd')
      .transform((currency) => checkCurrency(currency))
      .pipe(z.string())
      .meta({ description: 'Of amounts that name none, and of `$`; as ISO 4217 has it, usd when absent.' }),
    method: orDefault(anyCase(['auto', ...PARSE_METHODS]), 'auto').meta({
      description:
        'rules: by rules alone; llm: by the language model that is configured, or refused; auto: by the model where there is one, and else by rules.',
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
    method: z.enum(PARSE_METHODS).meta({ description: 'By which way it was read.' }),
    fallback_reason: z
      .string()
      .nullable()
      .meta({ description: 'Why the language model was not the one that read it, where it was to.' }),
  })
  .meta({ id: 'ParsePricingResponse' });
