/**
 * Traces a slice in the traces of the requests whose events it applies. The slice is one unit of work for all of them. Its full span is in
 * the trace of the first, with links to the others. Each other trace has a span of equal duration that links to it.
 */
import type { LogRecord } from '../../storage/log/log.ts';
import { inTrace, isTracing, type Span, startTrace } from '../../tracing/spans.ts';

/** Maximum number of links of an OpenTelemetry span. If slices have more traced requests, fewer should be sampled. */
const TRACES_MAX = 128;

type TracedRecord = LogRecord & { readonly traceparent: string };

export function traceSlice(records: readonly LogRecord[], work: () => Promise<void>): Promise<void> {
  if (!isTracing()) return work();
  const [first, ...others] = firstOfEachTrace(records).slice(0, TRACES_MAX);
  if (first === undefined) return work();
  const links = others.map(({ traceparent }) => traceparent);
  const how = {
    parent: first.traceparent,
    links,
    attributes: { ...placeAttributes(first), ...boundsAttributes(records) },
  };
  return inTrace('slice', { kind: 'consumer', ...how }, async (slice) => {
    const joined = others.map((record) => joinedSpan(record, slice));
    try {
      await work();
    } catch (error) {
      for (const span of joined) span?.fail(error);
      throw error;
    } finally {
      for (const span of joined) span?.end();
    }
  });
}

function joinedSpan(record: TracedRecord, slice: Span | undefined): Span | undefined {
  const links = slice?.traceparent === undefined ? [] : [slice.traceparent];
  return startTrace('slice.joined', {
    kind: 'consumer',
    parent: record.traceparent,
    links,
    attributes: placeAttributes(record),
  });
}

function firstOfEachTrace(records: readonly LogRecord[]): TracedRecord[] {
  const traces = new Map<string, TracedRecord>();
  for (const record of records) {
    const trace_id = record.traceparent?.split('-')[1];
    if (trace_id !== undefined && !traces.has(trace_id)) traces.set(trace_id, record as TracedRecord);
  }
  return [...traces.values()];
}

function placeAttributes({ tenant_id, environment_id, partition, offset }: LogRecord) {
  return { tenant_id, environment_id, partition, offset: String(offset) };
}

function boundsAttributes(records: readonly LogRecord[]) {
  return {
    slice_from: String(records[0]!.offset),
    slice_to: String(records.at(-1)!.offset + 1n),
    events: records.reduce((sum, record) => sum + record.event_count, 0),
  };
}
