/**
 * Usage is recorded under external ids, and an id can pass from one customer to another. If the former customer was charged, the new one is
 * not charged for usage before the id was released (docs/rules/identity.md, "Who an external id is").
 */
import { invalid } from '../../foundation/error.ts';
import { toInstant } from '../../foundation/time/instant.ts';

export type FormerHolder = {
  readonly external_id: string;
  readonly customer_id: string;
  readonly given_up_at: string;
};

export function checkStartAfterFormerHolder(former: FormerHolder | null, start_date: string): void {
  if (former === null || toInstant(start_date) >= toInstant(former.given_up_at)) return;
  const { external_id, customer_id, given_up_at } = former;
  throw invalid(
    'start_date',
    `must not lie before ${given_up_at}: until then the external id ${external_id} was that of customer ${customer_id}, who was charged for its usage`,
    { given_up_at, customer_id },
  );
}
