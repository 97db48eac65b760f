/**
 * Seals the usage lines of an invoice: reads the events of each once, as they stood at its marks, holds what they come to against what
 * the line says, and keeps the root of the tree over them (docs/decisions/0018-proof-of-an-invoice.md).
 */
import { createHash } from 'node:crypto';
import { planSegments } from '../../core/analytics/segments.ts';
import { EventCells } from '../../core/metering/event-cells.ts';
import { usageByKey } from '../../core/metering/usage.ts';
import { leafText } from '../../core/proof/leaf.ts';
import { type Hash, MerkleTree } from '../../core/proof/merkle.ts';
import type { Seal } from '../../core/proof/seal.ts';
import type { Scope } from '../../core/scope.ts';
import { instantOf } from '../../core/time/instant.ts';
import type { InvoiceLineItemModel } from '../../storage/models/invoice-line-item.ts';
import { keepSeals, sealsOf } from '../../storage/models/invoice-line-proof.ts';
import type { Stores } from '../../storage/stores.ts';
import { finished } from '../../storage/turns.ts';
import { countedEvents, meterOf, windowOf } from './counted-events.ts';
import type { Counting, Provable } from './gather.ts';

export const sha256: Hash = (...parts) => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};

export type Sealed = { readonly seal: Seal | null; readonly not_sealed: string | null };

type Asked = { readonly now: Date; readonly signal?: AbortSignal | undefined };

/** By the id of the line. What was sealed before is not read again. */
export async function sealLines(
  stores: Stores,
  scope: Scope,
  { invoice, lines }: Provable,
  { now, signal }: Asked,
): Promise<ReadonlyMap<string, Sealed>> {
  const usage = lines.flatMap(({ line, counting }) => (counting ? [{ line, counting }] : []));
  const known = await sealsOf(
    scope,
    usage.map(({ line }) => line.id),
    stores.postgres,
  );
  const read = new Map<string, EventsRead>();
  const fresh = new Map<string, Seal>();
  const faults = new Map<string, string>();
  for (const { line, counting } of usage) {
    if (known.has(line.id)) continue;
    const events = read.get(counting.key) ?? (await readEvents(stores, scope, counting, signal));
    read.set(counting.key, events);
    const fault = faultOf(line, events);
    const { event_count, root } = events;
    if (fault === null) fresh.set(line.id, { event_count, root, sealed_at: now.toISOString() });
    else faults.set(line.id, fault);
  }
  // A skipped one may be computed again, and has other lines then.
  const isKept = invoice.invoice_status !== 'SKIPPED';
  if (isKept) await keepSeals(scope, fresh, stores.postgres);
  const kept = isKept && fresh.size > 0 ? await sealsOf(scope, [...fresh.keys()], stores.postgres) : fresh;
  return new Map(
    usage.map(({ line }) => {
      const seal = known.get(line.id) ?? kept.get(line.id) ?? null;
      return [line.id, { seal, not_sealed: faults.get(line.id) ?? null }];
    }),
  );
}

type EventsRead = { readonly event_count: number; readonly quantity: string; readonly root: string };

async function readEvents(
  stores: Stores,
  scope: Scope,
  counting: Counting,
  signal: AbortSignal | undefined,
): Promise<EventsRead> {
  const meter = meterOf(counting);
  const range = windowOf(counting);
  const { timezone, billing_anchor } = counting.counted;
  const grid = { timezone, billing_anchor: instantOf(billing_anchor) };
  const bounds = { asker: scope.tenant_id, ...(signal ? { signal } : {}) };
  const plan = await finished(planSegments(meter, { ...range, grid }), bounds);
  const cells = new EventCells({ meter, plan, grid, key_of: () => '' });
  const tree = new MerkleTree(sha256);
  for await (const { event, leaf } of countedEvents(stores, scope, counting, signal)) {
    cells.add(event);
    tree.add(Buffer.from(leafText(leaf)));
  }
  const wants = { total: true, windows: false, running: false };
  const answers = await finished(usageByKey({ meter, ...range, plan, cells: cells.all(), keys: [''], wants }), bounds);
  const root = Buffer.from(tree.finish().root).toString('hex');
  return { event_count: tree.size, quantity: answers.totals.get('')!.value.toFixed(), root };
}

/** A correction whose money had no room keeps the old count, so that the next invoice looks at it again. */
function faultOf(line: InvoiceLineItemModel, { event_count, quantity }: EventsRead): string | null {
  const stated = line.computed_from;
  const isCounted = stated?.event_count === event_count || line.parent_line_item_id !== null;
  if (isCounted && stated?.quantity === quantity) return null;
  return `the line says ${stated?.event_count} events and ${stated?.quantity}, its events up to the marks are ${event_count} and come to ${quantity}`;
}
