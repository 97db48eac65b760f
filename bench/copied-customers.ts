/**
 * Customers with a subscription, as copies of one that was made through the interface: the same rows with ids of their own. A request
 * for each of twenty thousand takes longer than all that is measured of them.
 */
import type { Service } from './processes.ts';

/** In this order, because the later name the earlier. */
const TABLES = ['customers', 'subscriptions', 'subscription_line_items', 'invoices', 'invoice_line_items'] as const;

/** The time of an id stays, and the first of its entropy says which copy it is. */
const OWN_ID = `(cust|subs|subs_line|inv|inv_line)_([0-9A-Z]{10})[0-9A-Z]{6}([0-9A-Z]{10})`;

/** Of the only customer of this environment, whose external id ends in 0: so many more, whose external ids end in 1, 2, 3 … */
export async function copyCustomers(service: Service, environment_id: string, count: number): Promise<void> {
  const sql = <Row>(text: string): Promise<Row[]> => service.ask({ what: 'postgres', sql: text });
  for (const table of TABLES) {
    const copied = `replace(
      regexp_replace(to_jsonb(original)::text, '${OWN_ID}', '\\1_\\2' || lpad(nth::text, 6, '0') || '\\3', 'g'),
      'customer 0"', 'customer ' || nth || '"')::jsonb`;
    const number = table === 'invoices' ? ` || ${NUMBERED}` : '';
    await sql(
      `insert into ${table} select (jsonb_populate_record(null::${table}, ${copied}${number})).*
         from ${table} original, generate_series(1, ${count}) nth where original.environment_id = '${environment_id}'`,
    );
    await sql(`analyze ${table}`);
  }
  await sql(
    `update invoice_numbers set last_number = last_number + ${count} where environment_id = '${environment_id}'`,
  );
}

/** One behind the other, as if each had been opened behind the one before. */
const NUMBERED = `jsonb_build_object('invoice_number', left(original.invoice_number, -5) ||
  lpad((right(original.invoice_number, 5)::int + nth)::text, 5, '0'))`;
