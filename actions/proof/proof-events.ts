/**
 * The events of an invoice's usage lines as lines of JSON, one event each, their properties as they were sent: what the verifier
 * computes from. Of each line they come in the order of its tree; lines that counted the same events share them.
 */
import { groupBy } from '../../core/group-by.ts';
import { toLeaf } from '../../core/proof/leaf.ts';
import type { Scope } from '../../core/scope.ts';
import { formatUs } from '../../core/time/instant.ts';
import type { Stores } from '../../storage/stores.ts';
import { type CountedEvent, countedEvents } from './counted-events.ts';
import { type Counting, gatherProvable } from './gather.ts';

type OfLine = { readonly line_id: string; readonly counting: Counting };

/** Fails before the first line where there is no such invoice. */
export async function proofEvents(
  stores: Stores,
  scope: Scope,
  { invoice_id, signal }: { invoice_id: string; signal?: AbortSignal | undefined },
): Promise<AsyncGenerator<string>> {
  const { lines } = await gatherProvable(stores.postgres, scope, invoice_id);
  const usage = lines.flatMap(({ line, counting }) => (counting ? [{ line_id: line.id, counting }] : []));
  const together = groupBy(usage, ({ counting }) => counting.source);
  return textOf(stores, scope, { together: [...together.values()], signal });
}

async function* textOf(
  stores: Stores,
  scope: Scope,
  { together, signal }: { together: readonly (readonly OfLine[])[]; signal: AbortSignal | undefined },
): AsyncGenerator<string> {
  for (const of of together) {
    const countings = of.map(({ counting }) => counting);
    for await (const counted of countedEvents(stores, scope, countings, signal)) yield lineOf(counted, of);
  }
}

function lineOf({ event, taken }: CountedEvent, of: readonly OfLine[]): string {
  const { event_id, event_name, external_customer_id, timestamp_us, source, properties_text } = event;
  const counting = of.filter((_line, index) => taken[index] !== null);
  // An expression is another language: what it makes of an event is said beside the event.
  const values = of.flatMap(({ line_id, counting: { definition } }, index) => {
    const contribution = taken[index];
    return contribution && definition.aggregation.expression ? [[line_id, toLeaf(contribution).value] as const] : [];
  });
  const said = JSON.stringify({
    event_id,
    event_name,
    external_customer_id,
    timestamp: formatUs(timestamp_us),
    source,
    lines: counting.map(({ line_id }) => line_id),
    ...(values.length === 0 ? {} : { values: Object.fromEntries(values) }),
  });
  // JSON has line ends between its parts only.
  return `${said.slice(0, -1)},"properties":${properties_text.replace(/[\r\n]+/g, ' ')}}\n`;
}
