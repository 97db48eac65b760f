/**
 * Spans of requests, slices, jobs and statements (docs/operations.md, "Traces"). The start of the process decides whether tracing is
 * on. Without the setting there is no tracer, and every function here is a comparison with undefined. Only `tracing/open-telemetry.ts`
 * loads the library; it is imported only if the setting is present.
 */

export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

export type SpanKind = 'internal' | 'server' | 'client' | 'producer' | 'consumer';

export type SpanStart = {
  readonly kind?: SpanKind;
  /** Instant of its start (`performance.now`), if it is earlier than now. */
  readonly began_ms?: number | undefined;
  readonly attributes?: Attributes;
  /** The `traceparent` (W3C Trace Context) of the caller. If absent, the open span is the parent. */
  readonly parent?: string | undefined;
  /** Related spans besides the parent, each as a `traceparent`. */
  readonly links?: readonly string[];
};

export interface Span {
  readonly trace_id: string;
  readonly span_id: string;
  /** Value to propagate so that others can continue the trace; undefined if the span is not sampled. */
  readonly traceparent: string | undefined;
  /** Sampled and not ended. */
  readonly is_recording: boolean;
  set(attributes: Attributes): void;
  rename(name: string): void;
  fail(error: unknown): void;
  end(): void;
}

export interface Tracer {
  start(name: string, how: SpanStart): Span;
  /** The current span, also after an `await`. */
  open(): Span | undefined;
  within<Result>(span: Span | undefined, work: () => Result): Result;
}

let tracer: Tracer | undefined;

/** Must run before anything that is traced is opened; `undefined` turns tracing off. */
export function useTracer(next: Tracer | undefined): void {
  tracer = next;
}

/** Callers wrap functions for tracing only if this is true, so event ingestion has no overhead without tracing. */
export function isTracing(): boolean {
  return tracer !== undefined;
}

export function openSpan(): Span | undefined {
  return tracer?.open();
}

/** Starts a root span of this process: for a request, a slice, a job. */
export function inTrace<Result>(
  name: string,
  how: SpanStart,
  work: (span: Span | undefined) => Promise<Result>,
): Promise<Result> {
  if (tracer === undefined) return work(undefined);
  const span = tracer.within(undefined, () => tracer!.start(name, how));
  return tracer.within(span, () => untilEnd(span, () => work(span)));
}

/** Runs `work` in a child span of the open span. Without an open span, as in background work of the process, it creates none. */
export function inSpan<Result>(
  name: string,
  how: SpanStart,
  work: (span: Span | undefined) => Promise<Result>,
): Promise<Result> {
  const span = startSpan(name, how);
  return span === undefined ? work(undefined) : tracer!.within(span, () => untilEnd(span, () => work(span)));
}

/** Variant of `inSpan` for synchronous work. */
export function inSyncSpan<Result>(name: string, work: () => Result): Result {
  const span = startSpan(name, {});
  if (span === undefined) return work();
  try {
    return work();
  } catch (error) {
    span.fail(error);
    throw error;
  } finally {
    span.end();
  }
}

/** The caller ends the span. */
export function startSpan(name: string, how: SpanStart): Span | undefined {
  return tracer?.open()?.is_recording ? tracer.start(name, how) : undefined;
}

/** A root span that the caller ends. */
export function startTrace(name: string, how: SpanStart): Span | undefined {
  return tracer?.within(undefined, () => tracer!.start(name, how));
}

export function within<Result>(span: Span | undefined, work: () => Result): Result {
  return tracer === undefined ? work() : tracer.within(span, work);
}

async function untilEnd<Result>(span: Span, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    span.fail(error);
    throw error;
  } finally {
    span.end();
  }
}
