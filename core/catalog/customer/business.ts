/** Whether a customer is a business, for providers that have records of companies (docs/integrations/hubspot.md, "What is sent"). */
import type { Customer } from './record.ts';

/** Key of the metadata with the name of the business, for a customer without a tax number or with another name. */
const NAME_KEY = 'company_name';

/** Returns the name of the business; null if the customer has neither a tax number nor a name in its metadata. */
export function deriveBusinessName({
  name,
  external_id,
  tax_ids,
  metadata,
}: Pick<Customer, 'name' | 'external_id' | 'tax_ids' | 'metadata'>): string | null {
  const named = String(metadata?.[NAME_KEY] ?? '').trim();
  if (named !== '') return named;
  return tax_ids?.length ? name.trim() || external_id : null;
}
