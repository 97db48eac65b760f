/**
 * Creates a customer, feature or price from each row by the same actions as single requests. Each row has a savepoint in the transaction
 * that also writes the progress, so the counts match the created records.
 */
import type { z } from 'zod';
import { CreateCustomer, toParentReference, toRecordFields } from '../../../core/catalog/customer/request.ts';
import { CreateFeature } from '../../../core/catalog/feature/request.ts';
import { CreatePriceRequest } from '../../../core/catalog/price/request.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { parseRecordRow } from '../../../core/platform/import/record-row.ts';
import type { RowFault } from '../../../core/platform/import/row.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { createCustomer } from '../../catalog/customers/create-customer.ts';
import { createFeature } from '../../catalog/features/create-feature.ts';
import { createPrice } from '../../catalog/prices/create-price.ts';
import type { ImportedEntity } from './import-later.ts';
import { type FileRow, toRowFault } from './rows.ts';

type RecordContext = { readonly stores: Pick<Stores, 'postgres'>; readonly scope: Scope; readonly author: Author };
type RecordKind = {
  readonly shape: z.ZodObject;
  make(row: FileRow & { value: unknown }, making: RecordContext): Promise<unknown>;
};

function defineKind<Shape extends z.ZodObject>(
  shape: Shape,
  make: (body: z.output<Shape>, making: RecordContext) => Promise<unknown>,
): RecordKind {
  return { shape, make: (row, making) => make(parseRecordRow(shape, row), making) };
}

export const RECORDS: Readonly<Record<Exclude<ImportedEntity, 'EVENTS'>, RecordKind>> = {
  CUSTOMERS: defineKind(CreateCustomer, (body, { stores, scope, author }) =>
    createCustomer(stores, scope, {
      fields: toRecordFields(body),
      tax_rate_overrides: body.tax_rate_overrides ?? null,
      parent: toParentReference(body),
      links: body.integration_entity_mapping,
      author,
    }),
  ),
  FEATURES: defineKind(CreateFeature, (feature, { stores, scope, author }) =>
    createFeature(stores, scope, { feature, author }),
  ),
  PRICES: defineKind(CreatePriceRequest, (request, { stores, scope, author }) =>
    createPrice(stores, scope, { request, author }),
  ),
};

/** Returns the fault of the row; undefined if its record was created. A temporary error is thrown. */
export async function createRecord(
  entity_type: Exclude<ImportedEntity, 'EVENTS'>,
  row: FileRow,
  making: RecordContext,
): Promise<RowFault | undefined> {
  if ('fault' in row) return row.fault;
  try {
    await RECORDS[entity_type].make(row, making);
    return undefined;
  } catch (error) {
    return toRowFault(error, row.value);
  }
}
