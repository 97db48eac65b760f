/**
 * One `route` describes one operation: path, access, input, answer and handler. The zod shapes of the route decode requests, encode answers
 * and produce the OpenAPI document. Routes hold no try/catch: a thrown error becomes the error record (errors.ts).
 */
import type { Request, Response } from 'express';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { Permission } from '../../core/foundation/access/role.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Author } from '../../core/foundation/stamp.ts';
import type { CacheView } from '../../storage/cache/cached-answers.ts';
import type { Database } from '../../storage/foundation/stores.ts';
import type { EnvironmentClock } from '../../storage/models/schedule/environment-clock.ts';
import type { Effects } from './effects.ts';
import type { CachedAnswerRead } from './serialized-cache.ts';
import type { Services } from './services.ts';

type HttpMethod = 'get' | 'post' | 'put' | 'delete';

/** The permission that the caller needs; `public` needs no key. The OpenAPI document states it. */
export type Access = 'public' | Permission;

type RequestPrincipal = {
  readonly user_id: string;
  readonly tenant_id: string;
  readonly roles: readonly string[];
  /** API key of the request; null for a user token or a session. */
  readonly secret_id: string | null;
  /** Browser session of the request; null for a key or token. */
  readonly session_id: string | null;
};

export type Context = {
  readonly scope: Scope;
  readonly principal: RequestPrincipal;
  readonly services: Services;
  /** The request's instant, by the test clock of its environment if it has one. Code below a route reads no other clock. */
  readonly now: Date;
  /** Instant by the machine's clock: for rate limits, leases and retention, regardless of a test clock. */
  readonly received_at: Date;
  /** Test clock of the environment; null without one. */
  readonly clock: EnvironmentClock | null;
  readonly request_id: string;
  readonly log: Logger;
  /** Express objects, for the few routes that stream or need raw bytes. */
  readonly request: Request;
  readonly response: Response;
};

type RouteShape = z.ZodType;
export type DecodedInput<S> = S extends RouteShape ? z.output<S> : undefined;

/**
 * Effect of a repeated POST. `reads`: the route writes nothing. `same`: it is idempotent by nature. `inner_key`: its
 * action has an idempotency key, from the body or derived from the header (withInnerKey). `shown_once`: its effects are
 * recorded, and its answer cannot be read again. `replay`: its effects are recorded in the same transaction; the
 * function completes the work and answers with the current records.
 */
export type IdempotencyStrategy<Input> =
  | 'reads'
  | 'same'
  | 'inner_key'
  | 'shown_once'
  | { replay(done: Effects, input: Input, context: Context): Promise<unknown> };

export type RouteDefinition<
  P extends RouteShape | undefined,
  Q extends RouteShape | undefined,
  B extends RouteShape | undefined,
> = {
  method: HttpMethod;
  /** Relative to the base URL, Express style: `/meters/:id`. */
  path: string;
  operation_id: string;
  summary: string;
  /** Effect in a sentence or two: details that the summary omits, defaults, and refused requests. */
  description?: string;
  tag: string;
  access: Access;
  params?: P;
  query?: Q;
  body?: B;
  /** Further content types of the body besides JSON of its shape, each with an example for the documentation. */
  also_takes?: Readonly<Record<string, { schema: RouteShape; example: unknown }>>;
  /** The handler reads the inflated bytes: `context.request.body` is a Buffer of up to 32 MiB. */
  raw_body?: boolean;
  /** Content type of a body that is not JSON, besides JSON; the handler reads the bytes (raw_body). */
  takes_bytes?: string;
  /** Maximum number of inflated bytes. Set only if the limit is below the usual one. */
  body_limit?: number;
  /**
   * The body is a file of one of these content types, each with an example for the documentation. It arrives as raw bytes (raw_body), and
   * the handler checks its content.
   */
  takes_file?: Readonly<Record<string, string | readonly object[]>>;
  /** Whether `:id` may be any text that the sender of an event chose as its id, even one that equals a static path. */
  ids_are_texts?: boolean;
  /** Finds the id of the record that the operation reads or changes, if the path does not have it. */
  findTarget?(context: Context): string;
  /** The record is not a row of its own with an entity tag, such as one that is stored at a provider. */
  has_no_tag?: boolean;
  /** Headers with the signature of a request to a public route. A request without them gets 401. */
  signed?: readonly string[];
  /**
   * The answer contains a secret. It is stored for a repeated request only after encryption with a key derived from the caller's API key.
   */
  shows_secret?: boolean;
  /** Success status of the operation. */
  success: 200 | 201 | 202 | 204;
  /** Second success status, of the few operations that use `answerWithStatus()`. */
  other_success?: 200 | 202;
  /** Shape of the answer: every declared key is present, null when unset. A route that answers 204 or streams has no shape. */
  answer?: RouteShape;
  /** Content type of a file answer, instead of JSON or as an alternative to it: `application/pdf`. */
  file_type?: string;
  /** Further content types of the file, by the query or the file itself. */
  other_file_types?: readonly string[];
  /** Example body for the documentation if the example of the shape does not fit; its recorded answer is in api/examples. */
  example?: { body: unknown };
  /** Idempotency strategy of a POST that is not public. Default `reads` for a read permission. */
  idempotency?: IdempotencyStrategy<{ params: DecodedInput<P>; query: DecodedInput<Q>; body: DecodedInput<B> }>;
  /** Answer of `handle` if all of its data is cached; undefined if data must be loaded (cached-reads.ts). */
  readCached?(
    input: { params: DecodedInput<P>; query: DecodedInput<Q> },
    context: CachedReadContext,
  ): CachedAnswerRead | undefined;
  handle(
    input: { params: DecodedInput<P>; query: DecodedInput<Q>; body: DecodedInput<B> },
    context: Context,
  ): Promise<unknown>;
};

export type CachedReadContext = Pick<Context, 'now'> & { readonly cache: CacheView };

/** A route with its type parameters erased, for lists of routes. */
export type Route = RouteDefinition<RouteShape | undefined, RouteShape | undefined, RouteShape | undefined>;

export function route<
  P extends RouteShape | undefined = undefined,
  Q extends RouteShape | undefined = undefined,
  B extends RouteShape | undefined = undefined,
>(definition: RouteDefinition<P, Q, B>): Route {
  return definition;
}

/** A result with an explicit status: `return answerWithStatus(202, {…})`. It is encoded with the route's shape like any other. */
export class AnswerWithStatus {
  readonly http_status: number;
  readonly value: unknown;
  constructor(http_status: number, value: unknown) {
    this.http_status = http_status;
    this.value = value;
  }
}
export const answerWithStatus = (http_status: number, value: unknown) => new AnswerWithStatus(http_status, value);

/** Context whose reads see the uncommitted records of a transaction. */
export function toPreviewContext(context: Context, postgres: Database): Context {
  return { ...context, services: { ...context.services, postgres } };
}

/** Author and instant of the request's changes. */
export function toAuthor({ principal, now }: Context): Author {
  return { user_id: principal.user_id, now };
}

/** Options for a single change on behalf of a request. */
export function toChangeOptions(context: Context): { by: Author; database: Database } {
  return { by: toAuthor(context), database: context.services.postgres };
}

/** Parameters of a path that ends in `:id`. */
export const idParams = z.object({ id: z.string().min(1).meta({ description: 'Id of the record.' }) });

/** Answer `{message}` of deletes and other operations that return no record. */
export const MessageAnswer = z
  .object({ message: z.string().meta({ description: 'Result of the operation, for people.' }) })
  .meta({ id: 'SuccessResponse' });
