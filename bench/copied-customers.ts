/**
 * Customers with a subscription, as copies of one that was made through the interface: the same rows with ids of their own. A request
 * for each of twenty thousand takes longer than all that is measured of them.
 */
import type { Service } from './processes.ts';

/** In this order, because the later name the earlier. */
const TABLES = ['customers', 'subscriptions', 'subscription_line_items', 'invoices', 'invoice_line_items'] as const;

/** Of the only customer of this environment, whose external id ends in 0: so many more, whose external ids end in 1, 2, 3 … */
export async function copyCustomers(
  service: Pick<Service, 'call'>,
  environment_id: string,
  count: number,
): Promise<void> {
  const sql = <Row>(text: string): Promise<Row[]> => service.call({ what: 'postgres', sql: text });
  const own = `environment_id = '${environment_id}'`;
  const all = TABLES.map((table) => `select id from ${table} where ${own}`).join(' union all ');
  const ids = (await sql<{ id: string }>(all)).map(({ id }) => id);
  const copied = [...ids.map(copiedId), [`'customer 0"'`, `'customer ' || nth || '"'`]].reduce(
    (text, [from, to]) => `replace(${text}, ${from}, ${to})`,
    'to_jsonb(original)::text',
  );
  for (const table of TABLES) {
    const number = table === 'invoices' ? ` || ${NUMBERED}` : '';
    await sql(
      `insert into ${table} select copied.* from ${table} original, generate_series(1, ${count}) nth,
         lateral jsonb_populate_record(null::${table}, (${copied})::jsonb${number}) copied where original.${own}`,
    );
    await sql(`analyze ${table}`);
  }
  await sql(`update invoice_numbers set last_number = last_number + ${count} where ${own}`);
}

/** The prefix and the time of an id stay, and so does the end; the first of its entropy says which copy it is. */
function copiedId(id: string): [from: string, to: string] {
  return [`'${id}'`, `'${id.slice(0, -16)}' || lpad(nth::text, 6, '0') || '${id.slice(-10)}'`];
}

/** One behind the other, as if each had been opened behind the one before. */
const NUMBERED = `jsonb_build_object('invoice_number', left(original.invoice_number, -5) ||
  lpad((right(original.invoice_number, 5)::int + nth)::text, 5, '0'))`;
