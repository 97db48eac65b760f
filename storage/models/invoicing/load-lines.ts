/**
 * Lines of many invoices or subscriptions. There may be tens of thousands; reading them at once would block the event loop for
 * seconds. So they are read in batches of some hundreds, by few readers at once, tenants in turn.
 */
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { QuerySlots } from '../../concurrency/query-bounds.ts';
import type { Database } from '../../foundation/stores.ts';
import { narrow } from '../foundation/page.ts';
import type { SubscriptionLineItemModel } from '../subscriptions/subscription-line-item.ts';
import type { InvoiceLineItemModel } from './invoice-line-item.ts';

type LineModels = {
  invoice_id: typeof InvoiceLineItemModel;
  subscription_id: typeof SubscriptionLineItemModel;
};

/** A query for the lines of several parents. `parent` is the column of the parent's id. */
type ParentLinesQuery<Parent extends keyof LineModels> = {
  readonly model: LineModels[Parent];
  readonly parent: Parent;
  readonly ids: readonly string[];
};

export const LINES_AT_ONCE = 500;
/** Slots for reads of lines. A read takes a second or two; requests that wait longer than the limit are rejected. */
const LINE_READS = new QuerySlots({ at_once: 2, waiting_per_asker: 16, waiting: 64, wait_ms: 60_000 });

/** Published lines by parent, in the order of their positions, those without a position last. */
export async function loadLines<Parent extends keyof LineModels>(
  scope: Scope,
  wanted: ParentLinesQuery<Parent>,
  database: Database,
): Promise<Map<string, InstanceType<LineModels[Parent]>[]>> {
  type ParentLine = InstanceType<LineModels[Parent]>;
  const few = await listLinesAfter(scope, wanted, { last_id: null, database });
  const lines = (few.length < LINES_AT_ONCE ? few : await manyLines(scope, wanted, database)) as ParentLine[];
  const found = groupBy(lines, (line) => (line as unknown as Record<Parent, string>)[wanted.parent]);
  for (const own of found.values()) own.sort((a, b) => toPosition(a) - toPosition(b));
  return found;
}

type AnyLine = InstanceType<LineModels[keyof LineModels]>;

/** Reads in one snapshot, so that a record that is recomputed meanwhile is complete. */
function manyLines(scope: Scope, wanted: ParentLinesQuery<keyof LineModels>, database: Database): Promise<AnyLine[]> {
  const read = async (snapshot: Database) => {
    const lines: AnyLine[] = [];
    for (const ids of await planLineReads(scope, wanted, snapshot))
      for (let last_id: string | null = null, isMore = true; isMore; last_id = lines.at(-1)?.id ?? null) {
        const some = await listLinesAfter(scope, { ...wanted, ids }, { last_id, database: snapshot });
        lines.push(...some);
        isMore = some.length === LINES_AT_ONCE;
      }
    return lines;
  };
  const inSnapshot = { isolationLevel: 'repeatable read', readOnly: true } as const;
  return LINE_READS.within({ asker: scope.tenant_id }, () => database.transaction(read, inSnapshot));
}

/** Groups parents for the reads: parents with few lines share a read up to its maximum size, and a parent with many lines is read alone. */
async function planLineReads(
  scope: Scope,
  wanted: ParentLinesQuery<keyof LineModels>,
  database: Database,
): Promise<string[][]> {
  const counted = (await linesWanted(scope, wanted, database)
    .select(wanted.parent)
    .count({ lines: '*' })
    .groupBy(wanted.parent)) as unknown as (Record<keyof LineModels, string> & { lines: string })[];
  const groups: { ids: string[]; lines: number }[] = [];
  for (const { lines, [wanted.parent]: id } of counted) {
    const last = groups.at(-1);
    if (last && last.lines + Number(lines) < LINES_AT_ONCE) {
      last.ids.push(id);
      last.lines += Number(lines);
    } else groups.push({ ids: [id], lines: Number(lines) });
  }
  return groups.map(({ ids }) => ids);
}

type LinesCursor = { readonly last_id: string | null; readonly database: Database };

/** Next lines in the order of ids. */
async function listLinesAfter(
  scope: Scope,
  wanted: ParentLinesQuery<keyof LineModels>,
  { last_id, database }: LinesCursor,
) {
  const behind = last_id === null ? [] : ([['id', '>', last_id]] as const);
  const lines = narrow(linesWanted(scope, wanted, database), behind)
    .orderBy('id')
    .limit(LINES_AT_ONCE);
  return (await lines) as AnyLine[];
}

function linesWanted(scope: Scope, { model, parent, ids }: ParentLinesQuery<keyof LineModels>, database: Database) {
  // Both models have the columns named here.
  const lines = (model as LineModels['invoice_id']).in(scope, database);
  return narrow(lines, [
    ['status', 'published'],
    [parent, 'in', ids],
  ]);
}

function toPosition({ position }: AnyLine): number {
  return position ?? Number.MAX_SAFE_INTEGER;
}
