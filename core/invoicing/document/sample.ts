/** A sample invoice for previews of the document settings (docs/rules/documents.md, "Settings before they are saved"). */
import type { PriceTerms } from '../../catalog/pricing/charge.ts';
import { Decimal, sumDecimals } from '../../foundation/decimal.ts';
import { roundMoney } from '../../foundation/money.ts';
import { formatMs, type Milliseconds } from '../../foundation/time/instant.ts';
import type { Period } from '../../foundation/time/period.ts';
import { windowAt } from '../../foundation/time/window.ts';
import { dueDate } from '../../rating/due.ts';
import { priceFixedCharge } from '../../rating/line-amount.ts';
import type { InvoiceDocumentInput } from './document.ts';
import { formatDocumentNumber, type NumberConfig, toNumberToken } from './number.ts';

type SampleInvoiceInput = {
  readonly numbers: NumberConfig;
  readonly due_date_days: number;
  readonly now: Milliseconds;
};
type SampleInvoice = Pick<InvoiceDocumentInput, 'invoice' | 'lines' | 'taxes' | 'customer'>;

const CURRENCY = 'usd';
const CHARGES: readonly { name: string; quantity: string; price: Omit<PriceTerms, 'currency'> }[] = [
  { name: 'Platform fee', quantity: '1', price: { billing_model: 'FLAT_FEE', amount: '49' } },
  {
    name: 'API calls',
    quantity: '125000',
    price: {
      billing_model: 'TIERED',
      tier_mode: 'SLAB',
      tiers: [
        { up_to: 100_000, unit_amount: '0.002' },
        { up_to: null, unit_amount: '0.0015', flat_amount: '5' },
      ],
    },
  },
];
const TAX_PERCENT = '19';
const CUSTOMER = {
  name: 'Example Customer Ltd',
  external_id: 'example',
  email: 'accounts@customer.example',
  address_line1: '1 Market Street',
  address_line2: '',
  address_city: 'Dublin',
  address_state: '',
  address_postal_code: 'D01 F5P2',
  address_country: 'IE',
  tax_ids: ['IE1234567X'],
};

/** Builds a final invoice of the previous month with the first number and the due date of the settings. */
export function buildSampleInvoice({ numbers, due_date_days, now }: SampleInvoiceInput): SampleInvoice {
  const period = findPreviousMonth(numbers.timezone, now);
  const dates = { period_start: formatMs(period.start), period_end: formatMs(period.end) };
  const lines = CHARGES.map(({ name, quantity, price }) => {
    const item = { price: { ...price, currency: CURRENCY }, quantity: new Decimal(quantity) };
    const { amount, computed_from } = priceFixedCharge(item, WHOLE, CURRENCY);
    const charge = { quantity, amount: amount.toFixed(), currency: CURRENCY, computed_from };
    return { ...NO_ADJUSTMENTS, ...charge, ...dates, id: name, display_name: name };
  });
  const subtotal = sumDecimals(lines.map((line) => new Decimal(line.amount)));
  const tax = roundMoney(subtotal.times(TAX_PERCENT).div(100), CURRENCY);
  const total = subtotal.plus(tax).toFixed();
  const issued = formatMs(now);
  const invoice = {
    ...NO_DEDUCTIONS,
    ...dates,
    invoice_type: 'SUBSCRIPTION' as const,
    invoice_status: 'FINALIZED' as const,
    invoice_number: formatDocumentNumber(numbers, toNumberToken(numbers, now), 1n),
    currency: CURRENCY,
    created_at: issued,
    finalized_at: issued,
    due_date: formatMs(dueDate(now, null, due_date_days)),
    subtotal: subtotal.toFixed(),
    total_tax: tax.toFixed(),
    total,
    amount_remaining: total,
  };
  const taxes = [{ label: `VAT ${TAX_PERCENT}%`, amount: tax.toFixed() }];
  return { invoice, lines, taxes, customer: CUSTOMER };
}

const WHOLE = { part_ms: 1, whole_ms: 1 };
const NO_ADJUSTMENTS = { line_item_discount: '0', invoice_level_discount: '0' };
const NO_DEDUCTIONS = {
  total_discount: '0',
  total_prepaid_credits_applied: '0',
  adjustment_amount: '0',
  total_credits_applied_after_tax: '0',
  amount_paid: '0',
  refunded_amount: '0',
};

function findPreviousMonth(timezone: string, now: Milliseconds): Period {
  const current = windowAt(now, 'MONTH', { timezone });
  return windowAt(current.start - 1, 'MONTH', { timezone });
}
