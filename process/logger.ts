/**
 * The log: one JSON object per line on standard output. All processes share one format, so a collector needs one rule. `level` is a name,
 * `time` an instant in UTC; `service` and `version` name the source. A line has `tenant_id` if it concerns a tenant, `request_id` if a
 * request, `trace_id` if it is traced; each occurs once.
 */
import { format } from 'node:util';
import { type DestinationStream, type Logger, pino } from 'pino';
import type { Config } from '../config.ts';
import { isTracing, openSpan } from '../tracing/spans.ts';
import { VERSION } from './version.ts';

export function makeLogger(
  { LOG_LEVEL }: Pick<Config, 'LOG_LEVEL'>,
  service: string,
  destination?: DestinationStream,
): Logger {
  const options = {
    level: LOG_LEVEL,
    base: { service, version: VERSION, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (level: string) => ({ level }) },
    ...(isTracing() ? { mixin: findTraceId } : {}),
  };
  return destination ? pino(options, destination) : pino(options);
}

function findTraceId(): { trace_id?: string } {
  const span = openSpan();
  return span === undefined ? {} : { trace_id: span.trace_id };
}

/**
 * Logger for the first and last lines of a process, which appear at any LOG_LEVEL. It also takes over the console output of libraries,
 * which would be unreadable between lines of JSON.
 */
export function makeAnnouncer(service: string): Logger {
  const announcer = makeLogger({ LOG_LEVEL: 'info' }, service);
  const as =
    (level: 'info' | 'warn' | 'error') =>
    (...words: unknown[]) =>
      announcer[level](format(...words));
  Object.assign(globalThis.console, {
    log: as('info'),
    info: as('info'),
    warn: as('warn'),
    error: as('error'),
    trace: as('error'),
  });
  return announcer;
}
