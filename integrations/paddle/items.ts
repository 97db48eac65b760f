/**
 * Items of a transaction at Paddle: one net amount each, with quantity 1, which the customer cannot change. The products
 * are no part of the tenant's catalog (developer.paddle.com/build/transactions/bill-create-custom-items).
 */

import type { PushedInvoiceLine } from '../../core/platform/integration/pushed-lines.ts';
import { type ExactJson, JsonNumber } from '../exact-json.ts';
import { foldSmallestLines, sumMinorUnits } from '../minor-units.ts';
import { ProviderError } from '../provider-error.ts';
import { cutCharacters } from '../pushed-records.ts';
import { fromLowest, toLowest } from './amounts.ts';

const ITEMS_MAX = 100;
const NAME_MAX = 200;
const PRICE_DESCRIPTION_MAX = 500;
const PRODUCT_DESCRIPTION_MAX = 2_048;
const ONE = new JsonNumber('1');

/** Field of a price with our line, by which a credit note finds the item. */
export const LINE_FIELD = 'farthing_line_item_id';

type BilledLines = { readonly lines: readonly PushedInvoiceLine[]; readonly total: string; readonly currency: string };
export type PaddleSettings = { readonly tax_category: string };
type ItemTerms = PaddleSettings & { readonly label: string };
type PaddleItem = {
  readonly name: string;
  readonly amount: number;
  readonly line_item_id?: string | null;
  readonly description?: string;
};

/** Throws if the lines do not add up to the total. */
export function toItems({ lines, total, currency }: BilledLines, { tax_category, label }: ItemTerms): ExactJson[] {
  if (lines.length === 0) throw new ProviderError('person', 'an invoice without lines cannot be sent to Paddle');
  const amounts = lines.map(({ amount }) => toLowest(amount, currency));
  const sum = sumMinorUnits(amounts);
  const lowest = toLowest(total, currency);
  if (!sum.equals(String(lowest)))
    throw new ProviderError(
      'person',
      `the lines add up to ${fromLowest(sum, currency)} ${currency}, the total is ${total}`,
    );
  const items = amounts.some((amount) => amount < 0)
    ? [{ name: label, amount: lowest, description: listLines(lines) }]
    : lines.map(({ description: name, line_item_id }, index) => ({ name, amount: amounts[index]!, line_item_id }));
  return foldSmallestLines<PaddleItem>(items, ITEMS_MAX, ({ count, amount }) => ({
    name: `${count} further lines of smaller amounts`,
    amount,
  })).map((item) => toItem(item, { currency, tax_category }));
}

/** Lists the lines of an invoice that is sent as one amount, because Paddle has no negative prices. */
function listLines(lines: readonly PushedInvoiceLine[]): string {
  return lines.map(({ description, amount }) => `${description}: ${amount}`).join('\n');
}

function toItem(
  { name, amount, line_item_id, description }: PaddleItem,
  { currency, tax_category }: PaddleSettings & { readonly currency: string },
): ExactJson {
  return {
    quantity: ONE,
    price: {
      // Paddle requires two characters or more.
      description: cutCharacters(name.padEnd(2), PRICE_DESCRIPTION_MAX),
      // Paddle adds its tax to the amount.
      tax_mode: 'external',
      unit_price: { amount: String(amount), currency_code: currency.toUpperCase() },
      quantity: { minimum: ONE, maximum: ONE },
      custom_data: line_item_id ? { [LINE_FIELD]: line_item_id } : undefined,
      product: {
        name: cutCharacters(name, NAME_MAX),
        description: description === undefined ? undefined : cutCharacters(description, PRODUCT_DESCRIPTION_MAX),
        tax_category,
      },
    },
  };
}
