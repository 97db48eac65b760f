/**
 * The HTTP port of a process. It is held from the start and answers 503 until the process is ready. A process without an
 * interface of its own (pipeline, scheduler) shows its health, its readiness and its metrics here.
 */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { collectDefaultMetrics, register } from 'prom-client';
import type { Config } from '../config.ts';
import { readinessOf } from './readiness.ts';
import type { Stores } from './stores.ts';

export type Door = {
  /** `http://host:port` */
  readonly url: string;
  open(listener: RequestListener): void;
  /** No new connections; requests in hand are answered. */
  close(): Promise<void>;
};

const DRAIN_MS = 10_000;

const NO_ADDRESS = new Set(['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EAI_NODATA', 'EINVAL']);

export async function openDoor({ PORT, HOST }: Pick<Config, 'PORT' | 'HOST'>): Promise<Door> {
  let listener: RequestListener = ({ url }, response) => {
    if (url === '/health') return send(response, 200, { status: 'ok' });
    response.setHeader('retry-after', '1');
    send(response, 503, { code: 'service_unavailable', http_status_code: 503, message: 'starting' });
  };
  const server = createServer((request, response) => listener(request, response));
  server.listen(PORT, HOST);
  await once(server, 'listening').catch((error) => {
    throw NO_ADDRESS.has(error.code) ? new Error(`configuration: HOST: ${HOST} is no address of this machine`) : error;
  });
  let closed: Promise<void> | undefined;
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${HOST.includes(':') ? `[${HOST}]` : HOST}:${port}`,
    open: (opened) => {
      listener = opened;
    },
    close: () => (closed ??= drained(server)),
  };
}

/** A connection is closed as soon as nothing is asked on it any more; after the bound, those that still hold on as well. */
function drained(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const force = setTimeout(() => server.closeAllConnections(), DRAIN_MS);
    const idle = setInterval(() => server.closeIdleConnections(), 50);
    server.close(() => {
      clearTimeout(force);
      clearInterval(idle);
      resolve();
    });
  });
}

export function watchRoutes(stores: Stores): RequestListener {
  if (!register.getSingleMetric('process_cpu_seconds_total')) collectDefaultMetrics({ register });
  return (request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    if (pathname === '/health') return send(response, 200, { status: 'ok' });
    if (pathname === '/ready') return void sendReadiness(stores, response);
    if (pathname === '/metrics') return void sendMetrics(response);
    send(response, 404, {
      code: 'not_found',
      http_status_code: 404,
      message: 'this process has /health, /ready and /metrics',
    });
  };
}

async function sendReadiness(stores: Stores, response: ServerResponse): Promise<void> {
  const { is_ready, parts } = await readinessOf(stores);
  if (!is_ready) response.setHeader('retry-after', '1');
  send(response, is_ready ? 200 : 503, { status: is_ready ? 'ok' : 'unavailable', parts });
}

async function sendMetrics(response: ServerResponse): Promise<void> {
  try {
    const text = await register.metrics();
    response.setHeader('content-type', register.contentType);
    response.end(text);
  } catch {
    send(response, 500, { code: 'internal_error', http_status_code: 500, message: 'the metrics could not be read' });
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  response.statusCode = status;
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(body));
}
