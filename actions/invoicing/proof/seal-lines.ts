/**
 * Seals the usage lines of an invoice. It reads the events of each line once, up to the recorded log positions (marks), and compares their
 * count and quantity with the line. Then it stores the root of their proof tree (docs/decisions/0016-invoice-proof.md).
 */
import { hash } from 'node:crypto';
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { formatLeaf, toLeaf } from '../../../core/invoicing/proof/leaf.ts';
import { type Hash, MerkleTree } from '../../../core/invoicing/proof/merkle.ts';
import type { Seal } from '../../../core/invoicing/proof/seal.ts';
import { planSegments } from '../../../core/metering/analytics/segments.ts';
import { UsageBucket } from '../../../core/metering/bucket.ts';
import type { Contribution } from '../../../core/metering/contribution.ts';
import { EventCells } from '../../../core/metering/event-cells.ts';
import { computeUsageByKey } from '../../../core/metering/usage.ts';
import { mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';
import { runYielding } from '../../../storage/concurrency/time-slicer.ts';
import type { MarkedEvent } from '../../../storage/events/marked-events.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { createSeals, loadSeals } from '../../../storage/models/invoicing/invoice-line-proof.ts';
import { compileCountedMeter, readCountedEvents, toWindow } from './counted-events.ts';
import type { LineCounting, ProvableInvoice } from './gather.ts';
import { LevelDigest } from './level-digest.ts';

export const sha256: Hash = (...parts) => hash('sha256', Buffer.concat(parts), 'buffer');

export type LineSeal = { readonly seal: Seal | null; readonly not_sealed: string | null };

type SealOptions = { readonly now: Date; readonly signal?: AbortSignal | undefined };

/** Returns the seals by line id, and seals lines that have none yet. */
export async function sealLines(
  stores: Stores,
  scope: Scope,
  { invoice, lines }: ProvableInvoice,
  { now, signal }: SealOptions,
): Promise<ReadonlyMap<string, LineSeal>> {
  const usage = lines.flatMap(({ line, counting }) => (counting ? [{ line, counting }] : []));
  const known = await loadSeals(
    scope,
    usage.map(({ line }) => line.id),
    stores.postgres,
  );
  const read = await readBySource(stores, scope, {
    signal,
    countings: usage.flatMap(({ line, counting }) => (known.has(line.id) ? [] : counting)),
  });
  const fresh = new Map<string, Seal>();
  const faults = new Map<string, string>();
  for (const { line, counting } of usage) {
    if (known.has(line.id)) continue;
    const events = read.get(counting.key)!;
    const fault = findCountFault(line, events);
    const { event_count, root } = events;
    if (fault === null) fresh.set(line.id, { event_count, root, sealed_at: now.toISOString() });
    else faults.set(line.id, fault);
  }
  // The lines of a skipped invoice may change at a recomputation, so their seals are not stored.
  const isStored = invoice.invoice_status !== 'SKIPPED';
  if (isStored) await createSeals(scope, fresh, stores.postgres);
  const storedSeals = isStored && fresh.size > 0 ? await loadSeals(scope, [...fresh.keys()], stores.postgres) : fresh;
  return new Map(
    usage.map(({ line }) => {
      const seal = known.get(line.id) ?? storedSeals.get(line.id) ?? null;
      return [line.id, { seal, not_sealed: faults.get(line.id) ?? null }];
    }),
  );
}

/** Lists the differences between lines and their events, by line id; nothing is stored. */
export async function listCountFaults(
  stores: Pick<Stores, 'clickhouse'>,
  scope: Scope,
  lines: readonly { readonly line: InvoiceLineItemModel; readonly counting: LineCounting }[],
): Promise<ReadonlyMap<string, string>> {
  const read = await readBySource(stores, scope, {
    countings: lines.map(({ counting }) => counting),
    signal: undefined,
  });
  const faults = lines.map(({ line, counting }) => [line.id, findCountFault(line, read.get(counting.key)!)] as const);
  return new Map(faults.flatMap(([id, fault]) => (fault === null ? [] : [[id, fault] as const])));
}

/** Number of concurrent event streams. Most invoices have few events, so the time is mostly the latency of the store. */
const STREAMS = 4;

/** Computes count, quantity and tree root of each counting, by its key. Lines that count the same events share one read. */
async function readBySource(
  stores: Pick<Stores, 'clickhouse'>,
  scope: Scope,
  { countings, signal }: { countings: readonly LineCounting[]; signal: AbortSignal | undefined },
): Promise<ReadonlyMap<string, EventsDigest>> {
  const byKey = new Map(countings.map((counting) => [counting.key, counting]));
  const bySource = groupBy(byKey.values(), ({ source }) => source);
  const read = new Map<string, EventsDigest>();
  await mapConcurrently(STREAMS, [...bySource.values()], async (sameSource) => {
    const digests = await Promise.all(sameSource.map((counting) => startDigest(counting, { scope, signal })));
    for await (const { event, taken } of readCountedEvents(stores, scope, sameSource, signal))
      for (let index = 0; index < taken.length; index++) {
        const of = taken[index];
        if (of) digests[index]!.add(event, of);
      }
    for (const [index, { key }] of sameSource.entries()) read.set(key, await digests[index]!.finish());
  });
  return read;
}

type EventsDigest = { readonly event_count: number; readonly quantity: string; readonly root: string };

type EventsDigester = { add(event: MarkedEvent, taken: Contribution): void; finish(): Promise<EventsDigest> };

async function startDigest(
  counting: LineCounting,
  { scope, signal }: { scope: Scope; signal: AbortSignal | undefined },
): Promise<EventsDigester> {
  const meter = compileCountedMeter(counting);
  const range = toWindow(counting);
  const { timezone, billing_anchor } = counting.counted;
  const grid = { timezone, billing_anchor: toInstant(billing_anchor) };
  const bounds = { asker: scope.tenant_id, ...(signal ? { signal } : {}) };
  const plan = await runYielding(planSegments(meter, { ...range, grid }), bounds);
  // A meter with windows (`bucket_size`) needs one value per window; any other meter has a single value.
  const cells = new EventCells({ meter, plan, grid, key_of: () => '' });
  const bucket = new UsageBucket();
  const tree = new MerkleTree(sha256);
  const level = counting.level && new LevelDigest(meter, counting.level, counting.counted);
  const quantity = async () => {
    if (level) return level.finish();
    if (meter.bucket_size === undefined)
      return meter.aggregation.finish(bucket, { ...range, multiplier: meter.multiplier });
    const wants = { total: true, windows: false, running: false };
    const query = { meter, ...range, plan, cells: cells.all(), keys: [''], wants };
    return (await runYielding(computeUsageByKey(query), bounds)).totals.get('')!.value;
  };
  return {
    add(event, taken) {
      if (level) level.add(taken);
      else if (meter.bucket_size === undefined) meter.aggregation.add(bucket, taken);
      else cells.add(event);
      tree.add(Buffer.from(formatLeaf(toLeaf(taken))));
    },
    async finish() {
      const root = Buffer.from(tree.finish().root).toString('hex');
      return { event_count: tree.size, quantity: (await quantity()).toFixed(), root };
    },
  };
}

/**
 * Compares the events with the line. A correction line has the old count if its amount could not be applied in full, so that the next
 * invoice checks the charge again.
 */
function findCountFault(line: InvoiceLineItemModel, { event_count, quantity }: EventsDigest): string | null {
  const computed = line.computed_from;
  const isCounted = computed?.event_count === event_count || line.parent_line_item_id !== null;
  if (isCounted && computed?.quantity === quantity) return null;
  return `the line says ${computed?.event_count} events and ${computed?.quantity}, its events up to the marks are ${event_count} and come to ${quantity}`;
}
