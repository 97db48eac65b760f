/**
 * Checks a bulk insert in the form that knex writes, `insert into "t" ("a", "b") values ($1, $2), ($3, DEFAULT) returning *`,
 * without the parser, which would take longer than the insert. Undefined for any other form.
 */
import type { Demand, StatementVerdict } from './check-statement.ts';
import { listScopeColumns } from './tables.ts';

const HEAD = /^insert into "(\w+)" \(("\w+"(?:, "\w+")*)\) values \(/;
const TAIL = /\)(?: returning \*)?$/;

export function checkBulkInsert(text: string): StatementVerdict | undefined {
  const [head, name, list] = HEAD.exec(text) ?? [];
  const tail = TAIL.exec(text.slice(-20))?.[0];
  if (head === undefined || tail === undefined) return undefined;
  const columns = list!.split(', ').map((column) => column.slice(1, -1));
  const rows = text
    .slice(head.length, -tail.length)
    .split('), (')
    .map((row) => row.split(', '));
  if (!rows.every((row) => row.length === columns.length && row.every(isPlain))) return undefined;
  const demands: Demand[] = [];
  for (const { column, scope_column: holds } of listScopeColumns({ name: name! })) {
    const at = columns.indexOf(column);
    for (const row of rows) {
      const parameter = Number(row[at]?.slice(1));
      if (!parameter) return { rejected: `a row of ${name} is written without its ${column}` };
      demands.push({ parameter, many: false, scope_column: holds, table: name! });
    }
  }
  return { demands };
}

function isPlain(value: string): boolean {
  return value === 'DEFAULT' || /^\$\d+$/.test(value);
}
