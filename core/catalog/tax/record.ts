/** A tax rate and its associations (docs/rules/taxes.md). The tax is computed in core/rating/taxes.ts. */
import { z } from 'zod';
import { Decimal } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import { checkCurrency } from '../../foundation/money.ts';
import {
  anyCase,
  baseFields,
  decimalText,
  description,
  int32,
  metadata,
  orDefault,
  orNull,
  requiredKey,
  requiredName,
  timestampText,
} from '../../foundation/record.ts';
import { toInstant } from '../../foundation/time/instant.ts';

const TAX_RATE_TYPES = ['percentage', 'fixed'] as const;
const TAX_RATE_STATUSES = ['ACTIVE', 'INACTIVE'] as const;
export const TAX_BEHAVIORS = ['exclusive', 'inclusive'] as const;
const TAX_RATE_SCOPES = ['INTERNAL', 'EXTERNAL', 'ONETIME'] as const;
export const TAX_ENTITY_TYPES = ['customer', 'subscription', 'invoice', 'tenant'] as const;

export const taxRateScope = anyCase(TAX_RATE_SCOPES);
export const taxEntityType = anyCase(TAX_ENTITY_TYPES);
const MAX_PERCENTAGE = 100;

/** Fields of a request for a new tax rate. */
export const taxRateFields = z.object({
  name: requiredName.meta({ description: 'Name for people; shown on invoices.' }),
  code: requiredKey.meta({ description: 'Code by which associations name the rate; unique among published rates.' }),
  description,
  tax_rate_type: orNull(anyCase(TAX_RATE_TYPES)).meta({
    description: '`percentage` of the taxed amount, or a `fixed` amount. Default: the type of the given value.',
  }),
  percentage_value: orNull(decimalText).meta({
    description: 'Percentage of a percentage rate, from 0 to 100. Refused for a fixed rate.',
  }),
  fixed_value: orNull(decimalText).meta({
    description: 'Amount of a fixed rate, in the currency of the invoice; not negative. Refused for a percentage rate.',
  }),
  scope: orDefault(taxRateScope, 'INTERNAL').meta({
    description: 'INTERNAL, EXTERNAL or ONETIME. It is stored and has no effect. Default: INTERNAL.',
  }),
  tax_behavior: orDefault(anyCase(TAX_BEHAVIORS), 'exclusive').meta({
    description: '`exclusive` tax is added to the amounts, `inclusive` tax is contained in them. Default: exclusive.',
  }),
  metadata,
});
type TaxRateFields = z.output<typeof taxRateFields>;

export const taxRateShape = taxRateFields.extend({
  id: z.string(),
  tax_rate_type: anyCase(TAX_RATE_TYPES).meta({
    description: '`percentage` of the taxed amount, or a `fixed` amount.',
  }),
  tax_rate_status: anyCase(TAX_RATE_STATUSES).meta({
    description: 'Status of the rate. An INACTIVE rate cannot be attached.',
  }),
  ...baseFields,
});
export type TaxRate = z.output<typeof taxRateShape>;

/** Validates a requested rate: it has the value of its type and no other. */
export function defineTaxRate(input: TaxRateFields) {
  const { percentage_value, fixed_value } = input;
  const byValue = fixed_value !== null && percentage_value === null ? 'fixed' : 'percentage';
  const tax_rate_type = input.tax_rate_type ?? byValue;
  const isFixed = tax_rate_type === 'fixed';
  const [own, value] = isFixed ? ['fixed_value', fixed_value] : ['percentage_value', percentage_value];
  const [other, extra] = isFixed ? ['percentage_value', percentage_value] : ['fixed_value', fixed_value];
  if (value === null) throw invalid(own!, `is required for a ${tax_rate_type} rate`);
  if (extra !== null) throw invalid(other!, `is not allowed for a ${tax_rate_type} rate`);
  if (new Decimal(value!).isNegative()) throw invalid(own!, 'must not be negative');
  if (!isFixed && new Decimal(value!).gt(MAX_PERCENTAGE))
    throw invalid(own!, `must not be greater than ${MAX_PERCENTAGE}`);
  return { ...input, tax_rate_type, tax_rate_status: 'ACTIVE' as const };
}

export const DEFAULT_TAX_PRIORITY = 100;

/** Fields of a requested association, without the tax rate and the taxed record that it connects. */
export const taxAssociationFields = z.object({
  priority: orDefault(int32, DEFAULT_TAX_PRIORITY).meta({
    description: 'Order of the rates: a smaller priority comes first. Not negative; default: 100.',
  }),
  auto_apply: orDefault(z.boolean(), true).meta({
    description: 'Whether new subscriptions of the customer inherit the association. Default: true.',
  }),
  currency: orNull(z.string()).meta({
    description: 'The rate taxes only charges in this currency (ISO 4217). Default: all currencies.',
  }),
  start_date: orNull(timestampText).meta({ description: 'Start of the association. Default: now.' }),
  end_date: orNull(timestampText).meta({ description: 'End of the association, exclusive. Default: no end.' }),
  metadata,
});

export const taxAssociationShape = taxAssociationFields.extend({
  id: z.string(),
  tax_rate_id: z.string().meta({ description: 'Id of the tax rate.' }),
  entity_type: taxEntityType.meta({ description: 'Type of the taxed record.' }),
  entity_id: z.string().meta({ description: 'Id of the taxed customer, subscription, invoice or tenant.' }),
  start_date: timestampText.meta({ description: 'Start of the association.' }),
  ...baseFields,
});
export type TaxAssociation = z.output<typeof taxAssociationShape>;

type TaxAssociationTerms = Pick<TaxAssociation, 'priority' | 'start_date' | 'end_date' | 'currency'>;

/** Validates an association and returns it with its currency in stored form. */
export function checkAssociation<Association extends TaxAssociationTerms>(association: Association): Association {
  const { priority, start_date, end_date, currency } = association;
  if (priority < 0) throw invalid('priority', 'must not be negative');
  if (end_date !== null && toInstant(end_date) <= toInstant(start_date))
    throw invalid('end_date', 'must be after start_date');
  return { ...association, currency: currency === null ? null : checkCurrency(currency) };
}
