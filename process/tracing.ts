/** Traces, if the settings name a collector. Otherwise no library is loaded. */
import type { Config } from '../config.ts';
import { useTracer } from '../tracing/spans.ts';
import { makeLogger } from './logger.ts';
import { VERSION } from './version.ts';

/**
 * Runs before the stores are opened, because they are wrapped for tracing then. Returns the function that stops tracing, to be called last.
 */
export async function startTracing(config: Config, service: string): Promise<() => Promise<void>> {
  const url = getCollectorUrl(config);
  if (url === undefined) return async () => {};
  const { openTelemetry } = await import('../tracing/open-telemetry.ts');
  const logger = makeLogger(config, service);
  const { tracer, stop } = openTelemetry({
    url,
    headers: config.OTEL_EXPORTER_OTLP_HEADERS,
    resource_attributes: config.OTEL_RESOURCE_ATTRIBUTES,
    service: {
      name: config.OTEL_SERVICE_NAME ?? service,
      is_default: config.OTEL_SERVICE_NAME === undefined,
      version: VERSION,
    },
    sampler: config.OTEL_TRACES_SAMPLER ?? 'parentbased_always_on',
    ratio: config.OTEL_TRACES_SAMPLER_ARG ?? 1,
    notify: (what, error) => logger.warn({ part: 'traces', ...(error === undefined ? {} : { err: error }) }, what),
  });
  useTracer(tracer);
  return async () => {
    useTracer(undefined);
    await stop();
  };
}

/** The standard uses the endpoint for traces unchanged and appends a path to the general endpoint. */
function getCollectorUrl(config: Config): string | undefined {
  const { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: traces, OTEL_EXPORTER_OTLP_ENDPOINT: all } = config;
  return traces ?? (all === undefined ? undefined : `${all.replace(/\/$/, '')}/v1/traces`);
}
