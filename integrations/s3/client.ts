/**
 * Client of S3, or of an S3-compatible store, which anybody may operate. The size of each answer and the time of each
 * request are limited, and errors have messages of this service (docs/rules/exports.md, "What a store may cost"). The
 * library is loaded at the first use.
 */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { Readable } from 'node:stream';
import type { S3Client } from '@aws-sdk/client-s3';
import { FarthingError, notAllowed, unavailable } from '../../core/foundation/error.ts';
import { createGuardedAgent, isRefusal } from '../guarded-agent.ts';
import { createResolverLookup, type NameServers } from '../lookup.ts';

export type S3Options = {
  readonly bucket: string;
  readonly region: string;
  readonly endpoint: string | null;
  readonly path_style: boolean;
  readonly encryption: 'AES256' | 'aws:kms' | 'aws:kms:dsse' | null;
  readonly credentials: { access_key_id: string; secret_access_key: string; session_token: string | null };
  readonly allow_private_addresses: boolean;
  readonly name_servers?: NameServers;
  readonly times?: S3Times;
};

/** Time limit of each request in milliseconds, including its answer and its retries. */
export type S3Times = {
  readonly plain: number;
  /** For a part of 8 MiB the limit requires at least 70 kB a second. */
  readonly part: number;
  /** Time for the completion of an upload, in which S3 assembles the parts. */
  readonly complete: number;
};

export const S3_TIMES: S3Times = { plain: 30_000, part: 120_000, complete: 120_000 };
const CONNECTION_MS = 10_000;
/** Maximum size of an answer other than a file; usual answers have a few kilobytes. */
const ANSWER_BYTES_MAX = 256 * 1024;
const ATTEMPTS = 3;

/** Loads the library at the first use: it takes a tenth of a second. */
export function loadS3Library() {
  // Switches off its notice of the versions that will need Node 22, which is not for the operators of this version.
  process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';
  return import('@aws-sdk/client-s3');
}

export async function createClient(options: S3Options): Promise<S3Client> {
  const { S3Client } = await loadS3Library();
  const { access_key_id, secret_access_key, session_token } = options.credentials;
  const session = session_token === null ? {} : { sessionToken: session_token };
  const client = new S3Client({
    region: options.region,
    forcePathStyle: options.path_style,
    credentials: { accessKeyId: access_key_id, secretAccessKey: secret_access_key, ...session },
    ...(options.endpoint === null ? {} : { endpoint: options.endpoint }),
    // Some S3-compatible stores do not support the newer checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    maxAttempts: ATTEMPTS,
    requestHandler: { connectionTimeout: CONNECTION_MS, ...createAgents(options) },
  });
  boundAnswers(client);
  return client;
}

/** If private addresses are allowed, the hosts file names some of them, so the system's resolver is used. */
function createAgents({ allow_private_addresses, name_servers }: S3Options) {
  if (allow_private_addresses) return { httpAgent: new HttpAgent(), httpsAgent: new HttpsAgent() };
  const guard = { lookup: createResolverLookup(name_servers) };
  return {
    httpAgent: createGuardedAgent('http:', guard) as HttpAgent,
    httpsAgent: createGuardedAgent('https:', guard) as HttpsAgent,
  };
}

/** Limits the size of answers before the library reads them. */
function boundAnswers(client: S3Client): void {
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        const result = await next(args);
        const response = result.response as { statusCode: number; body: Readable };
        // The answer is a file that this service wrote. Its reader knows the length, so it is not limited here.
        if (commandName === 'GetObjectCommand' && response.statusCode < 300) return result;
        response.body = Readable.from([await readWhole(response)]);
        return result;
      },
    { step: 'deserialize', priority: 'low', name: 'boundedAnswer' },
  );
}

async function readWhole({ statusCode, body }: { statusCode: number; body: Readable }): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const piece of body as AsyncIterable<Buffer>) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > ANSWER_BYTES_MAX) throw buildS3Error({ name: 'an answer without an end', status: statusCode });
    }
  } finally {
    body.destroy();
  }
  return Buffer.concat(pieces);
}

type S3Request<Result> = {
  readonly ms: number;
  /** Signal that aborts the request. Absent for cleanup requests, which must run even after an abort. */
  readonly signal?: AbortSignal;
  ask(signal: AbortSignal): Promise<Result>;
};

/** Runs a request, which fails when its time is over even if the store keeps sending. */
export async function withTimeout<Result>({ ms, signal, ask }: S3Request<Result>): Promise<Result> {
  signal?.throwIfAborted();
  const end = new AbortController();
  const stop = () => end.abort(signal?.reason);
  const timer = setTimeout(() => end.abort(unavailable(`S3 (no answer within ${ms / 1_000} seconds)`)), ms);
  const over = new Promise<never>((_, reject) => {
    end.signal.addEventListener('abort', () => reject(end.signal.reason), { once: true });
  });
  signal?.addEventListener('abort', stop, { once: true });
  try {
    return await Promise.race([over, ask(end.signal)]);
  } catch (error) {
    throw end.signal.aborted ? end.signal.reason : toS3Error(error);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}

export type S3Failure = {
  readonly name?: string;
  readonly code?: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
};

/**
 * Turns an error into one of this service. A refusal of a private address is permanent; its message says only that the
 * address is not public.
 */
function toS3Error(error: unknown): unknown {
  if (error instanceof FarthingError) return error;
  if (isRefusal(error)) return notAllowed('the endpoint of S3 leads to an address that is not public');
  const { name = 'Error', code, $metadata } = error as S3Failure;
  const status = $metadata?.httpStatusCode;
  if (status !== undefined) return buildS3Error({ name, status, cause: error });
  return code === undefined ? error : unavailable(`S3 (${code})`, error);
}

/**
 * Builds the error. A rejection by S3 is permanent, e.g. because of the bucket or the credentials. Other failures may
 * be temporary; so is a missing upload, because a retry begins a new one.
 */
function buildS3Error({ name, status, cause }: { name: string; status: number; cause?: unknown }): FarthingError {
  const mayPass = status < 400 || status >= 500 || status === 408 || status === 429 || name === 'NoSuchUpload';
  return mayPass ? unavailable(`S3 (${name}, ${status})`, cause) : notAllowed(`S3 refused it: ${name} (${status})`);
}
