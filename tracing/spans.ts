/**
 * Spans at the edges of the service, named by its nouns (docs/operations.md, "Traces"). Who traces is decided once, when the
 * process starts: without the setting there is no tracer, and everything here is a comparison with undefined. The library
 * behind it is loaded by `tracing/open-telemetry.ts` alone, which is imported only when the setting is there.
 */

export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

export type SpanKind = 'internal' | 'server' | 'client' | 'producer' | 'consumer';

export type SpanStart = {
  readonly kind?: SpanKind;
  readonly attributes?: Attributes;
  /** The `traceparent` of W3C Trace Context that came from outside; the open span when absent. */
  readonly parent?: string | undefined;
  /** What it belongs to beside its parent, each as a `traceparent`. */
  readonly links?: readonly string[];
};

export interface Span {
  readonly trace_id: string;
  readonly span_id: string;
  /** What is handed on, so that others may continue the trace; nothing when it is not sampled. */
  readonly traceparent: string | undefined;
  /** It is sampled, and has not ended. */
  readonly is_recording: boolean;
  set(attributes: Attributes): void;
  rename(name: string): void;
  fail(error: unknown): void;
  end(): void;
}

export interface Tracer {
  start(name: string, how: SpanStart): Span;
  /** The span in which this is called, across everything that is awaited. */
  open(): Span | undefined;
  within<Result>(span: Span | undefined, work: () => Result): Result;
}

let tracer: Tracer | undefined;

/** Before anything is opened that would be traced; `undefined` turns it off. */
export function useTracer(next: Tracer | undefined): void {
  tracer = next;
}

/** What is wrapped for it is wrapped only then: whatever takes events in has no part of it otherwise. */
export function isTracing(): boolean {
  return tracer !== undefined;
}

export function openSpan(): Span | undefined {
  return tracer?.open();
}

/** What begins at an entrance: a request, a slice, a job. It has no parent in this process. */
export function inTrace<Result>(
  name: string,
  how: SpanStart,
  work: (span: Span | undefined) => Promise<Result>,
): Promise<Result> {
  if (tracer === undefined) return work(undefined);
  const span = tracer.within(undefined, () => tracer!.start(name, how));
  return tracer.within(span, () => untilEnd(span, () => work(span)));
}

/** Part of what is traced. Where no span is open, which is so for everything that a process does by itself, it is none. */
export function inSpan<Result>(
  name: string,
  how: SpanStart,
  work: (span: Span | undefined) => Promise<Result>,
): Promise<Result> {
  const span = startSpan(name, how);
  return span === undefined ? work(undefined) : tracer!.within(span, () => untilEnd(span, () => work(span)));
}

/** The same for what does not wait. */
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

/** For who ends it by hand. */
export function startSpan(name: string, how: SpanStart): Span | undefined {
  return tracer?.open()?.is_recording ? tracer.start(name, how) : undefined;
}

/** For an entrance that ends it by hand. */
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
