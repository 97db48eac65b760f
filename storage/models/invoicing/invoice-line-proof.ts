/** Table `invoice_line_proofs`: written once, and never changed (docs/decisions/0016-invoice-proof.md). */

import type { Scope } from '../../../core/foundation/scope.ts';
import type { Seal } from '../../../core/invoicing/proof/seal.ts';
import type { Database } from '../../foundation/stores.ts';

type LineSealRow = { invoice_line_item_id: string; event_count: string; root: string; sealed_at: string };

/** Seals by line id; unsealed lines are absent. */
export async function loadSeals(
  scope: Scope,
  line_ids: readonly string[],
  database: Database,
): Promise<Map<string, Seal>> {
  const { tenant_id, environment_id } = scope;
  const rows: LineSealRow[] = await database('invoice_line_proofs')
    .where({ tenant_id, environment_id })
    .whereRaw('invoice_line_item_id = any(?)', [[...line_ids]])
    .select('invoice_line_item_id', 'event_count', 'root', 'sealed_at');
  return new Map(
    rows.map(({ invoice_line_item_id, event_count, root, sealed_at }) => [
      invoice_line_item_id,
      { event_count: Number(event_count), root, sealed_at },
    ]),
  );
}

/** Stores seals. If two callers seal a line concurrently, the first seal stays, and both callers then read it. */
export async function createSeals(scope: Scope, seals: ReadonlyMap<string, Seal>, database: Database): Promise<void> {
  const new_seals = [...seals.values()];
  await database.raw(
    `insert into invoice_line_proofs (tenant_id, environment_id, invoice_line_item_id, event_count, root, sealed_at)
     select ?, ?, line, events, root, sealed_at
       from unnest(?::text[], ?::bigint[], ?::text[], ?::timestamptz[]) as sealed (line, events, root, sealed_at)
     on conflict do nothing`,
    [
      scope.tenant_id,
      scope.environment_id,
      [...seals.keys()],
      new_seals.map(({ event_count }) => event_count),
      new_seals.map(({ root }) => root),
      new_seals.map(({ sealed_at }) => sealed_at),
    ],
  );
}
