/**
 * Shapes of the bodies that Paddle accepts (developer.paddle.com/api-reference/customers/create-customer,
 * /addresses/create-address, /transactions/create-transaction, /transactions/update-transaction,
 * /adjustments/create-adjustment). A field that is not named there is refused.
 */
import { z } from 'zod';
import { refuseField } from './paddle-fake-refusal.ts';

const customData = z.record(z.string(), z.unknown()).nullish();
const text = (max: number) => z.string().max(max).nullish();
const money = z.strictObject({ amount: z.string().regex(/^\d+$/), currency_code: z.string().length(3) });

const customer = z.strictObject({
  email: z.email().max(320),
  name: text(1_024),
  custom_data: customData,
  locale: z.string().optional(),
});

const address = z.strictObject({
  country_code: z.string().regex(/^[A-Z]{2}$/),
  description: text(1_024),
  first_line: text(1_024),
  second_line: text(1_024),
  city: text(200),
  postal_code: text(200),
  region: text(200),
  custom_data: customData,
});

const product = z.strictObject({
  name: z.string().min(1).max(200),
  description: text(2_048),
  tax_category: z.enum(['standard', 'saas', 'digital-goods', 'ebooks', 'professional-services', 'website-hosting']),
  image_url: z.string().nullish(),
  custom_data: customData,
});

const item = z.strictObject({
  quantity: z.int().min(1),
  price: z.strictObject({
    description: z.string().min(2).max(500),
    name: z.string().min(1).max(150).nullish(),
    tax_mode: z.enum(['account_setting', 'external', 'internal', 'location']).default('account_setting'),
    unit_price: money,
    quantity: z
      .strictObject({ minimum: z.int().min(1), maximum: z.int().min(1) })
      .default({ minimum: 1, maximum: 100 }),
    custom_data: customData,
    product,
  }),
});

const billingDetails = z.strictObject({
  enable_checkout: z.boolean().default(false),
  payment_terms: z.strictObject({
    interval: z.enum(['day', 'week', 'month', 'year']),
    frequency: z.int().min(1),
  }),
  purchase_order_number: z.string().optional(),
  additional_information: z.string().nullish(),
});

const transaction = z.strictObject({
  items: z.array(item).min(1).max(100),
  status: z.literal('billed').optional(),
  customer_id: z.string().nullish(),
  address_id: z.string().nullish(),
  custom_data: customData,
  currency_code: z.string().length(3).default('USD'),
  collection_mode: z.enum(['automatic', 'manual']).default('automatic'),
  billing_details: billingDetails.nullish(),
});

const update = z.strictObject({ status: z.string() });

const adjustment = z.strictObject({
  action: z.enum(['credit', 'refund']),
  type: z.enum(['full', 'partial']).default('partial'),
  tax_mode: z.enum(['external', 'internal']).default('internal'),
  transaction_id: z.string(),
  reason: z.string().min(1),
  items: z
    .array(
      z.strictObject({
        item_id: z.string(),
        type: z.enum(['full', 'partial']),
        amount: z.string().regex(/^\d+$/).nullish(),
      }),
    )
    .min(1)
    .optional(),
});

const BODIES = { customer, address, transaction, update, adjustment };
export type PaddleBody<Name extends keyof typeof BODIES> = z.output<(typeof BODIES)[Name]>;

export function parseBody<Name extends keyof typeof BODIES>(name: Name, body: unknown): PaddleBody<Name> {
  const parsed = BODIES[name].safeParse(body);
  if (parsed.success) return parsed.data as PaddleBody<Name>;
  const [{ path, message } = { path: [], message: 'invalid' }] = parsed.error.issues;
  throw refuseField(path.join('.'), message);
}

/** Currencies of Paddle (developer.paddle.com/concepts/sell/supported-currencies). */
export const CURRENCIES: readonly string[] = [
  ...['USD', 'EUR', 'GBP', 'JPY', 'AUD', 'CAD', 'CHF', 'CLP', 'HKD', 'SGD', 'SEK', 'ARS', 'BRL', 'CNY', 'COP', 'CZK'],
  ...['DKK', 'HUF', 'ILS', 'INR', 'KRW', 'MXN', 'NOK', 'NZD', 'PEN', 'PLN', 'RUB', 'THB', 'TRY', 'TWD', 'UAH', 'VND'],
  'ZAR',
];
