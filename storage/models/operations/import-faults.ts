/** Table `import_faults`: rejected rows of an imported file, with the reasons. */

import type { Scope } from '../../../core/foundation/scope.ts';
import type { RowFault } from '../../../core/platform/import/row.ts';
import type { Database } from '../../foundation/stores.ts';

export type NumberedFault = RowFault & { readonly row_number: number };

export async function addFaults(
  { tenant_id, environment_id }: Scope,
  { task_id, faults }: { task_id: string; faults: readonly NumberedFault[] },
  database: Database,
): Promise<void> {
  if (faults.length === 0) return;
  await database('import_faults').insert(faults.map((fault) => ({ tenant_id, environment_id, task_id, ...fault })));
}

const PAGE = 1_000;

/** All faults, in the order of the rows. */
export async function* readFaults(
  { tenant_id, environment_id }: Scope,
  task_id: string,
  database: Database,
): AsyncGenerator<NumberedFault> {
  for (let after = 0; ; ) {
    const page = await database('import_faults')
      .where({ tenant_id, environment_id, task_id })
      .where('row_number', '>', after)
      .orderBy('row_number')
      .limit(PAGE)
      .select('row_number', 'field', 'code', 'message');
    for (const row of page) yield { ...row, row_number: Number(row.row_number) };
    if (page.length < PAGE) return;
    after = Number(page.at(-1).row_number);
  }
}
