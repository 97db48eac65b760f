/**
 * Quantities of an invoice line besides its charged units. A field is declared here alone: the shapes of records and requests, and the
 * fields of lines, derive from the list. line-amount.ts computes the quantities.
 */
import type { Decimal } from '../foundation/decimal.ts';
import { decimalText } from '../foundation/record.ts';

export const quantityShape = {
  adjusted_entitlement_quantity: decimalText
    .nullish()
    .meta({ description: 'Used units that entitlements made free; null without an entitlement.' }),
};

type QuantityField = keyof typeof quantityShape;
export type LineQuantities = { readonly [Field in QuantityField]?: Decimal | null };

export const QUANTITY_FIELDS = Object.keys(quantityShape) as readonly QuantityField[];

export function buildQuantityFields<Value>(toValue: (field: QuantityField) => Value): Record<QuantityField, Value> {
  return Object.fromEntries(QUANTITY_FIELDS.map((field) => [field, toValue(field)])) as Record<QuantityField, Value>;
}

export function formatQuantityFields(line: LineQuantities): Record<QuantityField, string | null> {
  return buildQuantityFields((field) => line[field]?.toFixed() ?? null);
}
