/**
 * Creates customers with a subscription by copying the rows of one that the API created, with new ids. Twenty thousand requests would take
 * longer than the measurement itself.
 */
import type { Service } from './processes.ts';

/** In this order, because later tables reference earlier ones. */
const TABLES = ['customers', 'subscriptions', 'subscription_line_items', 'invoices', 'invoice_line_items'] as const;

/**
 * Copies the only customer of this environment, whose external id ends in 0, `count` times; the external ids of the copies end in 1, 2, 3 …
 */
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

/**
 * Builds the id of a copy: the prefix, the time and the end of the original id remain, and the start of its entropy is the number of the
 * copy.
 */
function copiedId(id: string): [from: string, to: string] {
  return [`'${id}'`, `'${id.slice(0, -16)}' || lpad(nth::text, 6, '0') || '${id.slice(-10)}'`];
}

/** Consecutive invoice numbers, as if the subscriptions had been opened one after the other. */
const NUMBERED = `jsonb_build_object('invoice_number', left(original.invoice_number, -5) ||
  lpad((right(original.invoice_number, 5)::int + nth)::text, 5, '0'))`;
