/**
 * The log: one JSON object a line on the standard output, of one shape in every process, so that whoever collects it needs one
 * rule. `level` is a name, `time` an instant in UTC, `service` and `version` say who speaks. What belongs to a tenant has its
 * `tenant_id`, what belongs to a request its `request_id`, each once.
 */
import { type DestinationStream, type Logger, pino } from 'pino';
import type { Config } from '../config.ts';
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
  };
  return destination ? pino(options, destination) : pino(options);
}
