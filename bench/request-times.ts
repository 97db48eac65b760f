/**
 * How long the service took for each request, by its own clock, exactly: from the head of the request to the last byte of the answer, told by
 * node's own HTTP server and so outside of all that is measured. Answers that came from before the framework stand apart from those that went
 * through it (api/http/kept-reads.ts): the ones were kept, the others were gathered.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { monitorEventLoopDelay, PerformanceObserver, performance } from 'node:perf_hooks';

export type RequestTimes = {
  readonly kept_ms: number[];
  readonly gathered_ms: number[];
  /** By how much the event loop was late, and the part of the time in which it was busy. */
  readonly loop: { readonly p50_ms: number; readonly p99_ms: number; readonly max_ms: number; readonly busy: number };
  /** Pauses for the collection of garbage. */
  readonly garbage: { readonly count: number; readonly total_ms: number; readonly max_ms: number };
};

const NS_PER_MS = 1e6;

/** From now on; what it answers ends it. */
export function watchRequests(): () => RequestTimes {
  const began = new WeakMap<object, number>();
  const times: { kept_ms: number[]; gathered_ms: number[] } = { kept_ms: [], gathered_ms: [] };
  const onStart = (message: unknown) => {
    const { request } = message as { request: IncomingMessage };
    if (request.method === 'GET') began.set(request, performance.now());
  };
  const onFinish = (message: unknown) => {
    const { request, response } = message as { request: IncomingMessage; response: ServerResponse & { app?: unknown } };
    const start = began.get(request);
    if (start === undefined) return;
    (response.app === undefined ? times.kept_ms : times.gathered_ms).push(performance.now() - start);
  };
  subscribe('http.server.request.start', onStart);
  subscribe('http.server.response.finish', onFinish);
  const pauses: number[] = [];
  const collections = new PerformanceObserver((list) => pauses.push(...list.getEntries().map((one) => one.duration)));
  collections.observe({ entryTypes: ['gc'] });
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const before = performance.eventLoopUtilization();
  return () => {
    unsubscribe('http.server.request.start', onStart);
    unsubscribe('http.server.response.finish', onFinish);
    collections.disconnect();
    delay.disable();
    const loop = {
      p50_ms: delay.percentile(50) / NS_PER_MS,
      p99_ms: delay.percentile(99) / NS_PER_MS,
      max_ms: delay.max / NS_PER_MS,
      busy: performance.eventLoopUtilization(before).utilization,
    };
    const total_ms = pauses.reduce((sum, one) => sum + one, 0);
    return { ...times, loop, garbage: { count: pauses.length, total_ms, max_ms: Math.max(0, ...pauses) } };
  };
}
