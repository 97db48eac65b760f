/**
 * The whole API on databases of its own, over real HTTP: `const api = await startTestApi()`, then `await
 * api.request('POST', '/meters', { body })`. The clock does not move until `setNow` sets it.
 */
import { once } from 'node:events';
import { Agent, type IncomingMessage, request as requestHttp } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { pino } from 'pino';
import { buildListener } from '../../api/app.ts';
import { forgetKeys } from '../../api/http/auth.ts';
import type { Route } from '../../api/http/route.ts';
import type { Services } from '../../api/http/services.ts';
import { routes as allRoutes } from '../../api/resources.ts';
import { readConfig } from '../../config.ts';
import type { ApiKeyType, UserType } from '../../core/foundation/access/role.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import { startPipeline } from '../../pipeline/pipeline.ts';
import type { ConsoleSource } from '../../process/console-source.ts';
import { makeHttpServer } from '../../process/http-server.ts';
import { newId } from '../../storage/foundation/new-id.ts';
import { hashApiKey, makeApiKey } from '../../storage/foundation/secrets/api-key.ts';
import { openEmbeddedLog } from '../../storage/log/embedded/embedded.ts';
import { bootstrap } from '../../storage/models/operations/bootstrap.ts';
import type { UsageCache } from '../../storage/usage/usage-cache.ts';
import type { BodyFrom, SomeAnswer } from './answers.ts';
import { buildDeclaredCheck } from './declared.ts';
import { freshDatabase } from './stores.ts';

export type TestAnswer<Body = SomeAnswer> = {
  status: number;
  headers: Headers;
  /** The JSON of the answer; null without a body. */
  body: Body;
  text: string;
};

/** The type of the answer follows from a literal path. If the path is a variable, the caller names the type. */
export type Requester<Options> = {
  <const Method extends string, const Path extends string>(
    method: Method,
    path: Path,
    options?: Options,
  ): Promise<TestAnswer<BodyFrom<Method, Path>>>;
  <Body>(method: string, path: string, options?: Options): Promise<TestAnswer<Body>>;
};

export type TestRequest = {
  /** Sent as JSON; a Buffer or a text is sent unchanged. */
  body?: unknown;
  /** API key other than the default; null sends none. */
  key?: string | null;
  headers?: Record<string, string>;
};

export type TestApi = {
  /** `http://127.0.0.1:port`; the base URL of the API is this and `/v1`. */
  readonly url: string;
  /** API key of a super_admin. */
  readonly key: string;
  readonly scope: Scope;
  readonly services: Services;
  /** `path` is relative to /v1, unless it is a whole URL. */
  request: Requester<TestRequest>;
  setNow(now: Date | string): void;
  /** Creates another tenant with an environment, and a user with these roles; super_admin by default. */
  otherTenant(roles?: string[]): Promise<{ key: string; scope: Scope; user_id: string }>;
  /**
   * Creates a principal with these roles in the first tenant and environment, and returns its key. By default it is a
   * user with a private key.
   */
  keyWithRoles(roles: string[], kind?: { key_type?: ApiKeyType; user_type?: UserType }): Promise<string>;
  /** Everything logged so far. */
  logged(): string;
  stop(): Promise<void>;
};

/**
 * Longest wait of the pipeline for a full slice. Tests send few events, and each test waits for their effect: the default would add up to
 * half a second per batch.
 */
const SLICE_WAIT_MS = 20;

export async function startTestApi(
  options: {
    now?: Date | string;
    routes?: readonly Route[];
    config?: Record<string, string>;
    pipeline?: true;
    /**
     * Cache of current usage. Unless `beside` is set, the API and the pipeline are one process, as in `npm start`, and no other process
     * writes to Postgres.
     */
    usage_cache?: UsageCache;
    /** If true, the API with the `usage_cache` is a separate process, as in `npm run api`: other processes write to Postgres, too. */
    beside?: boolean;
    /** The console that the API serves; none if absent. */
    console?: ConsoleSource;
  } = {},
): Promise<TestApi> {
  let now = new Date(options.now ?? '2026-03-15T12:00:00Z');
  const database = await freshDatabase();
  const { postgres, clickhouse } = database;
  const config = readConfig(options.config ?? {});
  const log = await openEmbeddedLog(postgres, {
    partition_count: config.LOG_PARTITIONS ?? 1,
    append_timeout_ms: config.LOG_APPEND_TIMEOUT_MS,
    linger_ms: config.SLICE_WAIT_MS ?? SLICE_WAIT_MS,
  });
  const lines: string[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  const { usage_cache } = options;
  const { console } = options;
  const services: Services = { postgres, clickhouse, log, config, logger, clock: () => now, usage_cache, console };
  const { tenant, environment, api_key } = await bootstrap(postgres, { now });
  const key = api_key!;
  const scope = { tenant_id: tenant.id, environment_id: environment.id };

  // Without a pipeline, a request for an event that does not exist waits until its timeout.
  const pipeline =
    options.pipeline && (await startPipeline(services, { ...services, owner: 't', slice_events_max: 100 }));
  const checkDeclared = buildDeclaredCheck(options.routes ?? allRoutes);
  const server = makeHttpServer(buildListener(services, options.routes ?? allRoutes));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    url,
    key,
    scope,
    services,
    request: async (method: string, path: string, request: TestRequest = {}) => {
      const answer = await sendAdmitted(url, key, { method, path, ...request });
      checkDeclared({ method, path: `/v1${path}`, status: answer.status, type: answer.headers.get('content-type') });
      return answer;
    },
    setNow: (instant) => {
      now = new Date(instant);
    },
    otherTenant: (roles = ['super_admin']) => makeTenant(services, roles),
    keyWithRoles: async (roles, kind) => (await makeKey(services, scope, roles, kind)).key,
    logged: () => lines.join(''),
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      forgetKeys(services);
      await pipeline?.stop();
      await log.close();
      await database.close();
    },
  };
}

/**
 * Repeats a request that was refused because the process is overloaded, after the time in `Retry-After`. It was refused before it did anything. On
 * a slow machine some of fifty concurrent requests are refused.
 */
async function sendAdmitted(...request: Parameters<typeof send>): Promise<TestAnswer<never>> {
  for (let attempt = 1; ; attempt++) {
    const answer = await send(...request);
    if (answer.status !== 503 || attempt === ATTEMPTS_MAX || !answer.text.includes(OVERLOADED)) return answer;
    await pause(Number(answer.headers.get('retry-after')) * 1_000);
  }
}

const ATTEMPTS_MAX = 10;
const OVERLOADED = 'the service is overloaded, try again';

async function send(
  url: string,
  ownKey: string,
  { method, path, body, key = ownKey, headers = {} }: TestRequest & { method: string; path: string },
): Promise<TestAnswer<never>> {
  const sent = body === undefined ? undefined : bytesOf(body);
  const response = await exchange(path.startsWith('http') ? path : `${url}/v1${path}`, {
    method,
    headers: {
      ...(key === null ? {} : { 'x-api-key': key }),
      // The length is sent for a DELETE with a body, too; Node would omit it.
      ...(sent === undefined ? {} : { 'content-type': 'application/json', 'content-length': `${sent.length}` }),
      ...headers,
    },
    sent,
  });
  const isStream = response.headers['content-type']?.startsWith('text/event-stream');
  const text = await (isStream ? readFirstPart(response) : textOf(response));
  const { statusCode: status = 0 } = response;
  const answered = headersOf(response);
  return { status, headers: answered, body: parsed(text, answered), text };
}

/** Reads the beginning of a stream, which has no end, and closes it. */
async function readFirstPart(response: IncomingMessage): Promise<string> {
  const [part] = (await once(response, 'data')) as [Buffer];
  response.destroy();
  return part.toString('utf8');
}

/** Encodes a body. If it were a text, Node would send the headers in the encoding of the text. */
function bytesOf(body: unknown): Buffer {
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

type Exchange = { method: string; headers: Record<string, string>; sent: Buffer | undefined };

/** Sends a request with Node's own client: `fetch` used a seventh more of a worker's CPU. */
function exchange(url: string, { method, headers, sent }: Exchange): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = requestHttp(url, { method, headers, agent: AGENT }, resolve);
    request.on('error', reject);
    request.end(sent);
  });
}

/** Closes idle connections before any server does: the tested one waits 620 s, a server with Node's default 5 s. */
const AGENT = new Agent({ keepAlive: true, timeout: 3_000 });

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let at = 0; at < rawHeaders.length; at += 2) headers.append(rawHeaders[at]!, rawHeaders[at + 1]!);
  return headers;
}

/** The return type `never` is assignable to the answer of each operation. */
function parsed(text: string, headers: Headers): never {
  if (text === '') return null as never;
  const isJson = /\bjson\b/.test(headers.get('content-type') ?? '');
  return (isJson ? JSON.parse(text) : text) as never;
}

async function makeTenant(services: Services, roles: string[]) {
  const { postgres } = services;
  const scope = { tenant_id: newId('tenant'), environment_id: newId('environment') };
  await postgres('tenants').insert({ id: scope.tenant_id, name: 'Another tenant' });
  await postgres('environments').insert({
    id: scope.environment_id,
    tenant_id: scope.tenant_id,
    name: 'Production',
    type: 'production',
  });
  return { scope, ...(await makeKey(services, scope, roles)) };
}

async function makeKey(
  { postgres }: Services,
  scope: Scope,
  roles: string[],
  {
    key_type = 'private_key',
    user_type = 'user',
  }: { key_type?: ApiKeyType | undefined; user_type?: UserType | undefined } = {},
) {
  const user_id = newId('user');
  const key = makeApiKey(key_type);
  await postgres('users').insert({
    id: user_id,
    tenant_id: scope.tenant_id,
    name: 'Somebody',
    type: user_type,
    roles,
  });
  await postgres('secrets').insert({
    id: newId('secret'),
    ...scope,
    user_id,
    name: 'A key',
    type: key_type,
    key_hash: hashApiKey(key),
    display_id: 'sk_00***00',
  });
  return { key, user_id };
}
