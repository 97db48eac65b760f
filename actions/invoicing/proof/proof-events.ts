/**
 * Streams the events of an invoice's usage lines as JSON lines, with their properties as they were sent; the verifier computes from them.
 * The events of each line are in the order of its proof tree; events that several lines counted are sent once.
 */
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { formatUs } from '../../../core/foundation/time/instant.ts';
import { toLeaf } from '../../../core/invoicing/proof/leaf.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { type CountedEvent, readCountedEvents } from './counted-events.ts';
import { gatherProvable, type LineCounting } from './gather.ts';

type CountedProofLine = { readonly line_id: string; readonly counting: LineCounting };

/** Reads the events of a proof. An unknown invoice fails before the first line is sent. */
export async function readProofEvents(
  stores: Stores,
  scope: Scope,
  { invoice_id, signal }: { invoice_id: string; signal?: AbortSignal | undefined },
): Promise<AsyncGenerator<string>> {
  const { lines } = await gatherProvable(stores.postgres, scope, invoice_id);
  const usage = lines.flatMap(({ line, counting }) => (counting ? [{ line_id: line.id, counting }] : []));
  const groups = groupBy(usage, ({ counting }) => counting.source);
  return formatEvents(stores, scope, { groups: [...groups.values()], signal });
}

async function* formatEvents(
  stores: Stores,
  scope: Scope,
  { groups, signal }: { groups: readonly (readonly CountedProofLine[])[]; signal: AbortSignal | undefined },
): AsyncGenerator<string> {
  for (const of of groups) {
    const countings = of.map(({ counting }) => counting);
    for await (const counted of readCountedEvents(stores, scope, countings, signal)) yield formatEventLine(counted, of);
  }
}

function formatEventLine({ event, taken }: CountedEvent, proofLines: readonly CountedProofLine[]): string {
  const { event_id, event_name, external_customer_id, timestamp_us, source, properties_text } = event;
  const counting = proofLines.filter((_line, index) => taken[index] !== null);
  // The verifier cannot evaluate the expressions of meters, so the computed values are added to the event.
  const values = proofLines.flatMap(({ line_id, counting: { definition } }, index) => {
    const contribution = taken[index];
    return contribution && definition.aggregation.expression ? [[line_id, toLeaf(contribution).value] as const] : [];
  });
  const json = JSON.stringify({
    event_id,
    event_name,
    external_customer_id,
    timestamp: formatUs(timestamp_us),
    source,
    lines: counting.map(({ line_id }) => line_id),
    ...(values.length === 0 ? {} : { values: Object.fromEntries(values) }),
  });
  // Each event is one line. JSON has line breaks only between tokens, so spaces can replace them.
  return `${json.slice(0, -1)},"properties":${properties_text.replace(/[\r\n]+/g, ' ')}}\n`;
}
