/** Records of the pages of customers. */
import type { components, paths } from '../../client/openapi.d.ts';

export type CustomerRecord = components['schemas']['CustomerResponse'];
export type SummaryAnswer = paths['/customers/summaries']['post']['responses']['200']['content']['application/json'];
export type CustomerSums = SummaryAnswer['items'][number];
export type SummedAmount = CustomerSums['owed'][number];

/** The currency of all amounts of a page; null if there are several or none. */
export function findOnlyCurrency(
  summaries: readonly Pick<CustomerSums, 'owed' | 'overdue' | 'balance'>[],
): string | null {
  const currencies = new Set(
    summaries.flatMap(({ owed, overdue, balance }) =>
      [...owed, ...overdue, ...balance].map(({ currency }) => currency),
    ),
  );
  return currencies.size === 1 ? [...currencies][0]! : null;
}

/** Splits ids into the portions that the summaries accept. */
export function splitIds(ids: readonly string[], size: number): string[][] {
  return Array.from({ length: Math.ceil(ids.length / size) }, (_, at) => ids.slice(at * size, (at + 1) * size));
}

type Address = Pick<
  CustomerRecord,
  'address_line1' | 'address_line2' | 'address_city' | 'address_state' | 'address_postal_code' | 'address_country'
>;

/** Lines of an address without the empty ones. `country` names the country of a code. */
export function listAddressLines(address: Address, country: (code: string) => string): string[] {
  const { address_line1, address_line2, address_city, address_state, address_postal_code, address_country } = address;
  const join = (...parts: string[]) => parts.filter(Boolean).join(' ');
  const city = [join(address_postal_code, address_city), address_state].filter(Boolean).join(', ');
  return [address_line1, address_line2, city, address_country && country(address_country)].filter(Boolean);
}

/** The level of usage against its limit, from the percentage that the API states. */
export type UsageLevel = 'free' | 'near' | 'full' | 'over';

const NEAR_PERCENT = 80;
const FULL_PERCENT = 100;

/** `percent` only places the bar and chooses its words, so that a floating-point number is exact enough. */
export function deriveLevel(percent: number): UsageLevel {
  if (percent > FULL_PERCENT) return 'over';
  if (percent === FULL_PERCENT) return 'full';
  return percent >= NEAR_PERCENT ? 'near' : 'free';
}
