/**
 * The OpenTelemetry tracer. It sends spans asynchronously in batches, as OTLP over HTTP in JSON. Spans that a collector does not accept are
 * dropped; this is logged once until it accepts them again. No global registration: no library of the service is traced automatically.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Context,
  diag,
  type Link,
  type Span as OtelSpan,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { ExportResultCode, parseKeyPairsIntoRecord, parseTraceParent } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Attributes, Span, SpanStart, Tracer } from './spans.ts';

type OpenTelemetryOptions = {
  /** URL that receives the spans. */
  readonly url: string;
  /** `name=value,…`, percent-encoded, as in the standard. */
  readonly headers: string | undefined;
  readonly resource_attributes: string | undefined;
  readonly service: { readonly name: string; readonly is_default: boolean; readonly version: string };
  readonly sampler: SamplerName;
  readonly ratio: number;
  /** Reports that spans are lost, or accepted again. */
  readonly notify: (what: string, error?: unknown) => void;
};

type SamplerName = keyof typeof SAMPLERS;

const SAMPLERS = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: (ratio: number) => new TraceIdRatioBasedSampler(ratio),
  parentbased_always_on: () => new ParentBasedSampler({ root: new AlwaysOnSampler() }),
  parentbased_always_off: () => new ParentBasedSampler({ root: new AlwaysOffSampler() }),
  parentbased_traceidratio: (ratio: number) => new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
} satisfies Record<string, (ratio: number) => Sampler>;

/** Maximum wait for the last spans to be sent, so that a collector that hangs does not prevent a process from ending. */
const STOP_WITHIN_MS = 3_000;

type RunningTelemetry = {
  readonly tracer: Tracer;
  /** Sends the spans that have ended. */
  stop(): Promise<void>;
};

export function openTelemetry(options: OpenTelemetryOptions): RunningTelemetry {
  const { service, notify } = options;
  const ignore = () => undefined;
  diag.setLogger(
    // `reportLosses` reports spans that cannot be sent; this logger reports spans that are dropped before, as from a full queue.
    { error: ignore, warn: (what) => notify(what), info: ignore, debug: ignore, verbose: ignore },
    { suppressOverrideMessage: true },
  );
  const provider = new TracerProvider({
    resource: resourceFromAttributes(buildResource(options)),
    sampler: SAMPLERS[options.sampler](options.ratio),
    spanProcessors: [new BatchSpanProcessor({ exporter: reportLosses(createExporter(options), notify) })],
  });
  const stop = async () => {
    const late = new Promise<void>((resolve) => setTimeout(resolve, STOP_WITHIN_MS).unref());
    await Promise.race([provider.shutdown().catch(ignore), late]);
    diag.disable();
  };
  return {
    tracer: new OpenTelemetryTracer(provider.getTracer('farthing', service.version)),
    stop,
  };
}

function createExporter({ url, headers }: OpenTelemetryOptions): SpanExporter {
  return new OTLPTraceExporter({ url, headers: parseKeyPairsIntoRecord(headers) });
}

/** Precedence: a configured service name, then the resource attributes, then the default name. */
function buildResource({ service, resource_attributes }: OpenTelemetryOptions): Record<string, string> {
  const given = parseKeyPairsIntoRecord(resource_attributes);
  const name = service.is_default ? (given['service.name'] ?? service.name) : service.name;
  return { 'service.version': service.version, ...given, 'service.name': name };
}

/** Reports when spans begin to be lost and when they are accepted again, instead of every five seconds. */
function reportLosses(exporter: SpanExporter, notify: OpenTelemetryOptions['notify']): SpanExporter {
  let isLosing = false;
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const fails = result.code !== ExportResultCode.SUCCESS;
        if (fails !== isLosing) notify(fails ? 'spans are not taken, and lost' : 'spans are taken again', result.error);
        isLosing = fails;
        done(result);
      }),
    forceFlush: async () => exporter.forceFlush?.(),
    shutdown: () => exporter.shutdown(),
  };
}

const KINDS = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
};

class OpenTelemetryTracer implements Tracer {
  readonly #tracer: ReturnType<TracerProvider['getTracer']>;
  readonly #open = new AsyncLocalStorage<OpenTelemetrySpan | undefined>();

  constructor(tracer: ReturnType<TracerProvider['getTracer']>) {
    this.#tracer = tracer;
  }

  start(name: string, { kind = 'internal', began_ms, attributes = {}, parent, links = [] }: SpanStart): Span {
    const start = began_ms === undefined ? {} : { startTime: began_ms };
    const options = { ...start, kind: KINDS[kind], attributes: present(attributes), links: links.flatMap(linkTo) };
    return new OpenTelemetrySpan(this.#tracer.startSpan(name, options, this.#resolveContext(parent)));
  }

  open(): Span | undefined {
    return this.#open.getStore();
  }

  within<Result>(span: Span | undefined, work: () => Result): Result {
    return this.#open.run(span as OpenTelemetrySpan | undefined, work);
  }

  /** An unreadable parent from outside starts a new trace, as the standard requires. */
  #resolveContext(parent: string | undefined): Context {
    if (parent === undefined) return this.#open.getStore()?.context ?? ROOT_CONTEXT;
    const remote = parseTraceParent(parent);
    return remote === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, { ...remote, isRemote: true });
  }
}

function linkTo(traceparent: string): Link[] {
  const context = parseTraceParent(traceparent);
  return context === null ? [] : [{ context }];
}

class OpenTelemetrySpan implements Span {
  readonly #span: OtelSpan;

  constructor(span: OtelSpan) {
    this.#span = span;
  }

  get context(): Context {
    return trace.setSpan(ROOT_CONTEXT, this.#span);
  }

  get trace_id(): string {
    return this.#span.spanContext().traceId;
  }

  get span_id(): string {
    return this.#span.spanContext().spanId;
  }

  get traceparent(): string | undefined {
    const { traceId, spanId, traceFlags } = this.#span.spanContext();
    return (traceFlags & TraceFlags.SAMPLED) === 0 ? undefined : `00-${traceId}-${spanId}-01`;
  }

  get is_recording(): boolean {
    return this.#span.isRecording();
  }

  set(attributes: Attributes): void {
    this.#span.setAttributes(present(attributes));
  }

  rename(name: string): void {
    this.#span.updateName(name);
  }

  /** Records only the kind of the error: messages of the stores quote values. */
  fail(error: unknown): void {
    const { name, code } = error as { name?: string; code?: string | number };
    this.#span.setStatus({ code: SpanStatusCode.ERROR });
    this.#span.setAttribute('error.type', String(code ?? name ?? 'error'));
  }

  end(): void {
    this.#span.end();
  }
}

function present(attributes: Attributes): Record<string, string | number | boolean> {
  return Object.fromEntries(
    Object.entries(attributes).filter((entry): entry is [string, string | number | boolean] => entry[1] !== undefined),
  );
}
