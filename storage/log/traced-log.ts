/**
 * Appends of traced requests as spans, and in each of their records where its trace stands, so that the slice which gives them
 * their effect continues it. Without tracing the log is what it was.
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
      // The statement that makes it durable is one for all who append at the time, and in nobody's trace.
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
