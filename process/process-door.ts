/**
 * The HTTP port of a process. It is bound from the start and answers 503 until the process is ready. A process without an API of its own
 * (pipeline, scheduler) serves health, readiness and metrics here.
 */
import { once } from 'node:events';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { collectDefaultMetrics, Registry, register } from 'prom-client';
import type { Config } from '../config.ts';
import { errorRecord, FarthingError, invalid, methodNotAllowed } from '../core/foundation/error.ts';
import './build-info.ts';
import type { Stores } from '../storage/foundation/stores.ts';
import { endStreams, makeHttpServer } from './http-server.ts';
import { checkReadiness, NEEDED_FOR } from './readiness.ts';
import { ALIVE } from './version.ts';

export type Door = {
  /** URL of the process: `http://host:port`. */
  readonly url: string;
  /** URL of INTERNAL_PORT (`http://host:port`), if it is set. */
  readonly internal_url: string | undefined;
  open(listener: RequestListener): void;
  /** Stops accepting connections; requests in progress are answered. */
  close(): Promise<void>;
};

const DRAIN_MS = 10_000;

const NO_ADDRESS = new Set(['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EAI_NODATA', 'EINVAL']);

/** Requests received on INTERNAL_PORT, which is not public. */
const internal = new WeakSet<IncomingMessage>();

export function canShowMetrics(where: Config['METRICS'], request: IncomingMessage): boolean {
  return where === 'public' || (where === 'internal' && internal.has(request));
}

export async function openDoor({
  PORT,
  HOST,
  INTERNAL_PORT,
}: Pick<Config, 'PORT' | 'HOST' | 'INTERNAL_PORT'>): Promise<Door> {
  let listener: RequestListener = ({ url }, response) => {
    if (url === '/health') return send(response, 200, ALIVE);
    response.setHeader('retry-after', '1');
    sendError(response, new FarthingError('service_unavailable', 'starting'));
  };
  const servers = [await listen(PORT, HOST, (request, response) => listener(request, response))];
  if (INTERNAL_PORT !== undefined) {
    const inside: RequestListener = (request, response) => {
      internal.add(request);
      listener(request, response);
    };
    servers.push(
      await listen(INTERNAL_PORT, HOST, inside).catch(async (error) => {
        await drain(servers[0]!);
        throw error;
      }),
    );
  }
  let closed: Promise<unknown> | undefined;
  const [url, internal_url] = servers.map((server) => formatUrl(server, HOST));
  return {
    url: url!,
    internal_url,
    open: (opened) => {
      listener = opened;
    },
    close: async () => {
      closed ??= Promise.all(servers.map(drain));
      await closed;
    },
  };
}

async function listen(port: number, host: string, listener: RequestListener): Promise<Server> {
  const server = makeHttpServer(listener);
  server.listen(port, host);
  await once(server, 'listening').catch((error) => {
    throw NO_ADDRESS.has(error.code) ? new Error(`configuration: HOST: ${host} is no address of this machine`) : error;
  });
  return server;
}

function formatUrl(server: Server, host: string): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`;
}

/** Closes each connection as soon as it is idle; after DRAIN_MS, all remaining ones. */
function drain(server: Server): Promise<void> {
  endStreams(server);
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

export function createHealthListener(stores: Stores & { readonly config: Config }): RequestListener {
  const own = new Registry();
  collectDefaultMetrics({ register: own });
  return (request, response) => {
    const { path, parameters } = parseTarget(request.url ?? '/');
    const shown = PATHS.has(path) && (path !== '/metrics' || canShowMetrics(stores.config.METRICS, request));
    if (!shown) return sendError(response, new FarthingError('not_found', SHOWN_HERE));
    if (!READING.has(request.method ?? '')) return rejectMethod(request, response, path);
    // These operations have no query parameters.
    const [unknown] = parameters;
    if (unknown !== undefined) return sendError(response, invalid(unknown, 'is no query parameter of this operation'));
    if (path === '/health') return send(response, 200, ALIVE);
    if (path === '/ready') return void sendReadiness(stores, response);
    void sendMetrics(Registry.merge([own, register]), response);
  };
}

const SHOWN_HERE = 'this process has /health, /ready and, where METRICS says so, /metrics';
const PATHS = new Set(['/health', '/ready', '/metrics']);
const READING = new Set(['GET', 'HEAD']);

/** The target is any text that a client sends, so only the absolute form of proxies (`http://host/path`) is parsed as a URL. */
function parseTarget(target: string): { path: string; parameters: string[] } {
  const own = target.startsWith('/') || !URL.canParse(target) ? target : toPath(new URL(target));
  const [path = '', ...rest] = own.split('?');
  return { path, parameters: [...new URLSearchParams(rest.join('?')).keys()] };
}

/** A proxy may send `http://host/path`. */
function toPath({ pathname, search }: URL): string {
  return `${pathname}${search}`;
}

function rejectMethod({ method = '' }: IncomingMessage, response: ServerResponse, path: string): void {
  response.setHeader('allow', [...READING].join(', '));
  sendError(response, methodNotAllowed({ method, path }));
}

async function sendReadiness(stores: Stores, response: ServerResponse): Promise<void> {
  const { is_ready, answer } = await checkReadiness(stores, NEEDED_FOR.queries);
  if (!is_ready) response.setHeader('retry-after', '1');
  send(response, is_ready ? 200 : 503, answer);
}

async function sendMetrics(metrics: Registry, response: ServerResponse): Promise<void> {
  try {
    const text = await metrics.metrics();
    response.setHeader('content-type', metrics.contentType);
    response.end(text);
  } catch {
    sendError(response, new FarthingError('internal_error', 'the metrics could not be read'));
  }
}

function sendError(response: ServerResponse, error: FarthingError): void {
  send(response, error.http_status_code, errorRecord(error));
}

function send(response: ServerResponse, status: number, body: object): void {
  response.statusCode = status;
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(body));
}
