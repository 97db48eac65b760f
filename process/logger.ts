/**
 * The log: one JSON object a line on the standard output, of one shape in every process, so that whoever collects it needs one
 * rule. `level` is a name, `time` an instant in UTC, `service` and `version` say who speaks. What belongs to a tenant has its
 * `tenant_id`, what belongs to a request its `request_id`, what is traced its `trace_id`, each once.
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
 * For the first and the last words of a process, which are said at any LOG_LEVEL. What libraries write to the console comes out
 * here as well: between lines of JSON it could not be read.
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
