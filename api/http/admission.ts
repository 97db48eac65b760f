/**
 * Admits requests to the framework, or refuses them with 503 and `Retry-After` before anything is spent on them
 * (docs/decisions/0030-overload.md). Probes are always admitted. Events and webhooks of providers have a queue of their own.
 */
import type { RequestListener, ServerResponse } from 'node:http';
import { performance } from 'node:perf_hooks';
import type { Request } from 'express';
import { Counter, Gauge, register } from 'prom-client';
import { errorRecord, FarthingError } from '../../core/foundation/error.ts';
import { Admission, type AdmissionLimits } from '../../storage/concurrency/admission.ts';
import { countWaitingStatements } from '../../storage/concurrency/query-bounds.ts';
import { readPoolState } from '../../storage/postgres/pool/postgres.ts';
import { findKnownTenant } from './auth.ts';
import { setErrorHeaders } from './errors.ts';
import { isQuiet, REQUEST_ID, readRequestId } from './request-log.ts';
import type { Route } from './route.ts';
import type { Services } from './services.ts';

/** Kinds of requests, each with a queue. `events`: the caller may not send the request again, so it goes first. */
const KINDS = ['events', 'others'] as const;
type Kind = (typeof KINDS)[number];

/**
 * Four requests at once keep the event loop busy. More of them make each other late, because a request of fifty statements takes fifty rounds
 * of the loop; and a round accepts one new connection, so they delay even the refusals. An accept costs a tenth of another request and mostly
 * waits for the disk, where concurrent accepts share a write.
 */
const LIMITS: Record<Kind, AdmissionLimits> = {
  events: { at_once_min: 32, burst_ms: 5_000, lasting_ms: 2_000 },
  others: { at_once_min: 4, burst_ms: 5_000, lasting_ms: 500 },
};

/** Share of the time from which the event loop is busy. */
const BUSY = 0.9;
/** Number of waiting statements from which ClickHouse is busy. */
const STATEMENTS_MAX = 32;
const LOGGED_EVERY_MS = 10_000;

const refusals = new Counter({
  name: 'farthing_requests_refused_total',
  help: 'Requests that were refused because the process is overloaded',
  labelNames: ['kind'] as const,
  registers: [register],
});
/** Queues of this process, for the metric. */
let queues: Readonly<Partial<Record<Kind, Pick<Admission, 'waiting'>>>> = {};
new Gauge({
  name: 'farthing_requests_waiting',
  help: 'Requests that wait until the process has capacity for them',
  labelNames: ['kind'] as const,
  registers: [register],
  collect() {
    for (const [kind, queue] of Object.entries(queues)) this.set({ kind }, queue.waiting);
  },
});

type AdmittedListener = {
  readonly routes: readonly Route[];
  /** Header names and values of every answer, alternating. */
  readonly headers: readonly string[];
  readonly listener: RequestListener;
};

type AdmissionServices = Pick<Services, 'postgres' | 'logger'>;

export function limitLoad(
  services: AdmissionServices,
  { routes, headers, listener }: AdmittedListener,
  admissions = makeAdmissions(services),
): RequestListener {
  const events = matchEvents(routes);
  const logRefusal = makeRefusalLog(services);
  // Each series starts at 0, because a rate sees no increase in a series that begins with its first refusal.
  for (const kind of KINDS) refusals.inc({ kind }, 0);
  queues = admissions;
  return (request, response) => {
    // The caller has left while its cached answer was prepared: `close` is not emitted again.
    if (response.closed) return;
    // A preflight has no key, and its refusal would hide from a browser that the request may be repeated.
    if (isQuiet(request.url) || request.method === 'OPTIONS') return listener(request, response);
    (request as Request).arrived_ms = performance.now();
    const kind = request.method === 'POST' && events.test(request.url!) ? 'events' : 'others';
    const admission = admissions[kind];
    admission.enter({
      // Unknown callers share one queue: a flood of invented keys counts as one tenant.
      getAsker: () => findKnownTenant(request as Request, services) ?? '',
      onEnd: (end) => response.once('close', end),
      run: () => listener(request, response),
      refuse: (details) => {
        refusals.inc({ kind });
        logRefusal(kind);
        refuse(response, details, [...headers, REQUEST_ID, readRequestId(request)]);
      },
    });
  };
}

function makeAdmissions(services: AdmissionServices): Record<Kind, Admission> {
  const now = () => performance.now();
  return {
    events: new Admission(LIMITS.events, { now, watchShortage: watchEventLoop }),
    others: new Admission(LIMITS.others, { now, watchShortage: () => watchCapacity(services) }),
  };
}

function watchEventLoop(): () => boolean {
  let before = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return utilization > BUSY;
  };
}

/** More requests at once would wait in the process: for the event loop, for a connection, or for ClickHouse. */
function watchCapacity({ postgres }: AdmissionServices): () => boolean {
  const isLoopBusy = watchEventLoop();
  return () => isLoopBusy() || (readPoolState(postgres)?.waiting ?? 0) > 0 || countWaitingStatements() > STATEMENTS_MAX;
}

/** Matches the addresses of requests with events: of a collector, or of a payment provider. */
function matchEvents(routes: readonly Route[]): RegExp {
  const paths = routes
    .filter(({ method, access, path, raw_body }) =>
      access === 'public' ? path.startsWith('/webhooks/') : method === 'post' && access === 'event:write' && raw_body,
    )
    .map(({ path }) => path.replace(/:\w+/g, '[^/?]+'));
  return new RegExp(`^(?:/v1){0,2}(?:${paths.join('|')})/?(?:\\?|$)`);
}

/** A line per refused request would add to the overload. */
function makeRefusalLog({ logger }: AdmissionServices): (kind: Kind) => void {
  let logged_ms = Number.NEGATIVE_INFINITY;
  let refused = 0;
  return (kind) => {
    refused++;
    const now = performance.now();
    if (now - logged_ms < LOGGED_EVERY_MS) return;
    logger.warn({ kind, refused }, 'requests are refused, because the process is overloaded');
    logged_ms = now;
    refused = 0;
  };
}

function refuse(response: ServerResponse, details: { retry_after_seconds: number }, headers: string[]): void {
  const error = new FarthingError('service_unavailable', 'the service is overloaded, try again', { details });
  const body = JSON.stringify(errorRecord(error));
  setErrorHeaders({ set: (name, value) => headers.push(name, value) }, error);
  headers.push('Content-Type', 'application/json; charset=utf-8', 'Content-Length', String(Buffer.byteLength(body)));
  response.writeHead(error.http_status_code, headers);
  response.end(body);
}
