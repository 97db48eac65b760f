/**
 * Records appends of traced requests as spans, and stores the trace context in their records, so that the slice of a record continues its
 * trace. Without tracing, the log is unchanged.
 */
import { inSpan, isTracing, within } from '../../tracing/spans.ts';
import type { EventLog, LogEntry } from './log.ts';

export function traceLog<Log extends EventLog>(log: Log): Log {
  if (!isTracing()) return log;
  const append = log.append.bind(log);
  const traced = (entries: readonly LogEntry[]) =>
    inSpan('log.append', { kind: 'producer', attributes: countEntries(entries) }, (span) => {
      const traceparent = span?.traceparent;
      const marked = traceparent === undefined ? entries : entries.map((entry) => ({ ...entry, traceparent }));
      // The statement serves all concurrent appends, so it belongs to no single trace.
      return within(undefined, () => append(marked));
    });
  return Object.assign(log, { append: traced });
}

function countEntries(entries: readonly LogEntry[]) {
  return {
    events: entries.reduce((sum, entry) => sum + entry.event_count, 0),
    partitions: entries.length,
    bytes: entries.reduce((sum, entry) => sum + entry.body.length, 0),
  };
}
