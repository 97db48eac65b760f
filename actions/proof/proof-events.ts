/**
 * The events of an invoice's usage lines as lines of JSON, one event each, their properties as they were sent: what the verifier
 * computes from. Of each line they come in the order of its tree; lines that counted the same events share them.
 */
import type { Scope } from '../../core/scope.ts';
import { formatUs } from '../../core/time/instant.ts';
import type { Stores } from '../../storage/stores.ts';
import { type CountedEvent, countedEvents } from './counted-events.ts';
import { type Counting, gatherProvable } from './gather.ts';

type Together = { readonly counting: Counting; readonly line_ids: string[] };

/** Fails before the first line where there is no such invoice. */
export async function proofEvents(
  stores: Stores,
  scope: Scope,
  { invoice_id, signal }: { invoice_id: string; signal?: AbortSignal | undefined },
): Promise<AsyncGenerator<string>> {
  const { lines } = await gatherProvable(stores.postgres, scope, invoice_id);
  const byKey = new Map<string, Together>();
  for (const { line, counting } of lines) {
    if (counting === null) continue;
    const together = byKey.get(counting.key) ?? { counting, line_ids: [] };
    together.line_ids.push(line.id);
    byKey.set(counting.key, together);
  }
  return textOf(stores, scope, { together: [...byKey.values()], signal });
}

async function* textOf(
  stores: Stores,
  scope: Scope,
  { together, signal }: { together: readonly Together[]; signal: AbortSignal | undefined },
): AsyncGenerator<string> {
  for (const { counting, line_ids } of together) {
    const lines = JSON.stringify(line_ids);
    // An expression is another language: what it makes of an event is said beside the event.
    const tellsValue = Boolean(counting.definition.aggregation.expression);
    for await (const counted of countedEvents(stores, scope, counting, signal))
      yield lineOf(counted, { lines, tellsValue });
  }
}

function lineOf({ event, leaf }: CountedEvent, { lines, tellsValue }: { lines: string; tellsValue: boolean }): string {
  const { event_id, event_name, external_customer_id, timestamp_us, source, properties_text } = event;
  const said = JSON.stringify({
    event_id,
    event_name,
    external_customer_id,
    timestamp: formatUs(timestamp_us),
    source,
  });
  const value = tellsValue ? `,"value":${JSON.stringify(leaf.value)}` : '';
  // JSON has line ends between its parts only.
  const properties = properties_text.replace(/[\r\n]+/g, ' ');
  return `${said.slice(0, -1)}${value},"lines":${lines},"properties":${properties}}\n`;
}
