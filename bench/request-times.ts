/**
 * Measures the exact time of the service per request by its own clock, from the request headers to the last byte of the answer. Node's HTTP
 * server reports it, so the measurement is outside the measured code. Answers from the cache before the framework are separate from those
 * that went through it (api/http/cached-reads.ts).
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants, monitorEventLoopDelay, PerformanceObserver, performance } from 'node:perf_hooks';
import { quantile } from './report.ts';

export type RequestTimes = {
  readonly cached_ms: number[];
  readonly framework_ms: number[];
  /** Delay of the event loop, and the share of time in which it was busy. */
  readonly loop: { readonly p50_ms: number; readonly p99_ms: number; readonly max_ms: number; readonly busy: number };
  /** Pauses for collections of the young generation, and for all others. */
  readonly garbage: { readonly minor: Pauses; readonly other: Pauses };
};

type Pauses = { readonly count: number; readonly total_ms: number; readonly p50_ms: number; readonly max_ms: number };

const BEGAN = Symbol('began');
/** A property of the request, because a weak map of requests would itself delay garbage collection. */
type Timed = IncomingMessage & { [BEGAN]?: number };

type TimedRead = { readonly began_ms: number; readonly ended_ms: number; readonly isCached: boolean };

/** Calls `onRead` for each answer from now on; the returned function ends this. */
export function eachRead(onRead: (read: TimedRead) => void): () => void {
  const onStart = (message: unknown) => {
    const { request } = message as { request: Timed };
    if (request.method === 'GET') request[BEGAN] = performance.now();
  };
  const onFinish = (message: unknown) => {
    const { request, response } = message as { request: Timed; response: ServerResponse & { app?: unknown } };
    const began_ms = request[BEGAN];
    if (began_ms === undefined) return;
    onRead({ began_ms, ended_ms: performance.now(), isCached: response.app === undefined });
  };
  subscribe('http.server.request.start', onStart);
  subscribe('http.server.response.finish', onFinish);
  return () => {
    unsubscribe('http.server.request.start', onStart);
    unsubscribe('http.server.response.finish', onFinish);
  };
}

/** Typed array, which grows outside the heap. */
class Times {
  #values = new Float64Array(1 << 16);
  #count = 0;

  add(value: number): void {
    if (this.#count === this.#values.length) {
      const more = new Float64Array(this.#count * 2);
      more.set(this.#values);
      this.#values = more;
    }
    this.#values[this.#count++] = value;
  }

  all(): number[] {
    return [...this.#values.subarray(0, this.#count)];
  }
}

function pausesOf(pauses: readonly number[]): Pauses {
  const total_ms = pauses.reduce((sum, one) => sum + one, 0);
  const p50_ms = pauses.length === 0 ? 0 : quantile(pauses, 0.5);
  return { count: pauses.length, total_ms, p50_ms, max_ms: Math.max(0, ...pauses) };
}

const NS_PER_MS = 1e6;

/** Starts to measure; the returned function stops and returns the result. */
export function watchRequests(): () => RequestTimes {
  const times = { kept_ms: new Times(), framework_ms: new Times() };
  const leave = eachRead(({ began_ms, ended_ms, isCached: isKept }) =>
    (isKept ? times.kept_ms : times.framework_ms).add(ended_ms - began_ms),
  );
  const pauses: { minor: number[]; other: number[] } = { minor: [], other: [] };
  const collections = new PerformanceObserver((list) => {
    for (const { duration, detail } of list.getEntries() as (PerformanceEntry & { detail: { kind: number } })[])
      (detail.kind === constants.NODE_PERFORMANCE_GC_MINOR ? pauses.minor : pauses.other).push(duration);
  });
  collections.observe({ entryTypes: ['gc'] });
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const before = performance.eventLoopUtilization();
  return () => {
    leave();
    collections.disconnect();
    delay.disable();
    const loop = {
      p50_ms: delay.percentile(50) / NS_PER_MS,
      p99_ms: delay.percentile(99) / NS_PER_MS,
      max_ms: delay.max / NS_PER_MS,
      busy: performance.eventLoopUtilization(before).utilization,
    };
    const garbage = { minor: pausesOf(pauses.minor), other: pausesOf(pauses.other) };
    return { cached_ms: times.kept_ms.all(), framework_ms: times.framework_ms.all(), loop, garbage };
  };
}
