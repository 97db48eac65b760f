/** A tax rate, and what it is of (docs/rules/taxes.md). What it comes to is in taxes.ts. */
import { z } from 'zod';
import { Decimal } from '../decimal.ts';
import { invalid } from '../error.ts';
import { checkCurrency } from '../money.ts';
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
} from '../record.ts';
import { toInstant } from '../time/instant.ts';

export const TAX_RATE_TYPES = ['percentage', 'fixed'] as const;
const TAX_RATE_STATUSES = ['ACTIVE', 'INACTIVE'] as const;
export const TAX_BEHAVIORS = ['exclusive', 'inclusive'] as const;
const TAX_RATE_SCOPES = ['INTERNAL', 'EXTERNAL', 'ONETIME'] as const;
export const TAX_ENTITY_TYPES = ['customer', 'subscription', 'invoice', 'tenant'] as const;

export const taxRateScope = anyCase(TAX_RATE_SCOPES);
export const taxEntityType = anyCase(TAX_ENTITY_TYPES);
const MAX_PERCENTAGE = 100;

/** What a client states of a new tax rate. */
export const taxRateFields = z.object({
  name: requiredName.meta({ description: 'What people call it; an invoice shows it.' }),
  code: requiredKey.meta({ description: 'How associations name it; of one published rate.' }),
  description,
  tax_rate_type: orNull(anyCase(TAX_RATE_TYPES)).meta({
    description: 'percentage of what is taxed, or a fixed amount; told by the value that is stated when absent.',
  }),
  percentage_value: orNull(decimalText).meta({ description: 'Of a percentage rate: from 0 to 100.' }),
  fixed_value: orNull(decimalText).meta({
    description: 'Of a fixed rate: an amount in the currency of the invoice, not below 0.',
  }),
  scope: orDefault(taxRateScope, 'INTERNAL').meta({
    description: 'INTERNAL, EXTERNAL or ONETIME: kept for you, and every rate that is attached is computed here.',
  }),
  tax_behavior: orDefault(anyCase(TAX_BEHAVIORS), 'exclusive').meta({
    description: 'exclusive is added to the amounts, inclusive is in them already; exclusive when absent.',
  }),
  metadata,
});
type TaxRateFields = z.output<typeof taxRateFields>;

export const taxRateShape = taxRateFields.extend({
  id: z.string(),
  tax_rate_type: anyCase(TAX_RATE_TYPES).meta({ description: 'percentage of what is taxed, or a fixed amount.' }),
  tax_rate_status: anyCase(TAX_RATE_STATUSES).meta({ description: 'An INACTIVE rate is not attached to anything.' }),
  ...baseFields,
});
export type TaxRate = z.output<typeof taxRateShape>;

/** The rate that a request asks for: of one type, with the value of that type and no other. */
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

/** What a client states of an association beside the rate and the thing that it is of. */
export const taxAssociationFields = z.object({
  priority: orDefault(int32, DEFAULT_TAX_PRIORITY).meta({
    description: 'Rates with a smaller one stand first; not below 0, 100 when absent.',
  }),
  auto_apply: orDefault(z.boolean(), true).meta({
    description: 'Whether new subscriptions of a customer take it over; true when absent.',
  }),
  currency: orNull(z.string()).meta({ description: 'Only what is charged in this currency; all when absent.' }),
  start_date: orNull(timestampText).meta({ description: 'From when on; now when absent.' }),
  end_date: orNull(timestampText).meta({ description: 'Until when, exclusive; open when absent.' }),
  metadata,
});

export const taxAssociationShape = taxAssociationFields.extend({
  id: z.string(),
  tax_rate_id: z.string().meta({ description: 'The rate.' }),
  entity_type: taxEntityType.meta({ description: 'What is taxed with it.' }),
  entity_id: z.string().meta({ description: 'The id of that customer, subscription, invoice or tenant.' }),
  start_date: timestampText.meta({ description: 'From when on.' }),
  ...baseFields,
});
export type TaxAssociation = z.output<typeof taxAssociationShape>;

type TaxAssociationTerms = Pick<TaxAssociation, 'priority' | 'start_date' | 'end_date' | 'currency'>;

/** The association with its currency as it is stored, when its fields go together. */
export function checkAssociation<Stated extends TaxAssociationTerms>(association: Stated): Stated {
  const { priority, start_date, end_date, currency } = association;
  if (priority < 0) throw invalid('priority', 'must not be negative');
  if (end_date !== null && toInstant(end_date) <= toInstant(start_date))
    throw invalid('end_date', 'must be after start_date');
  return { ...association, currency: currency === null ? null : checkCurrency(currency) };
}
