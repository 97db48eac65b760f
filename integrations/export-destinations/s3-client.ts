/**
 * Asking S3, or whatever speaks S3, which may be anybody's: no answer is read further than it may be long, no question takes longer than it may
 * take, and what comes of it is said in our words (docs/rules/exports.md, "What a store may cost"). The library is loaded when it is used.
 */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { Readable } from 'node:stream';
import type { S3Client } from '@aws-sdk/client-s3';
import { FarthingError, notAllowed, unavailable } from '../../core/error.ts';
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

/** How long each question may take, with its answer and what is tried again of it, in milliseconds. */
export type S3Times = {
  readonly plain: number;
  /** A part is 8 MiB: that is 70 kB a second at least. */
  readonly part: number;
  /** S3 puts the parts together meanwhile. */
  readonly complete: number;
};

export const S3_TIMES: S3Times = { plain: 30_000, part: 120_000, complete: 120_000 };
const CONNECTION_MS = 10_000;
/** All that is asked is answered in a few kilobytes. */
const ANSWER_BYTES_MAX = 256 * 1024;
const ATTEMPTS = 3;

export async function loadS3Library() {
  try {
    return await import('@aws-sdk/client-s3');
  } catch (error) {
    throw new FarthingError('system_error', 'the library for S3 is not installed (@aws-sdk/client-s3)', {
      cause: error,
    });
  }
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
    // Not all that speaks S3 knows the newer checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    maxAttempts: ATTEMPTS,
    requestHandler: { connectionTimeout: CONNECTION_MS, ...createAgents(options) },
  });
  boundAnswers(client);
  return client;
}

/** Where private addresses may be named, the file of hosts names some. */
function createAgents({ allow_private_addresses, name_servers }: S3Options) {
  if (allow_private_addresses) return { httpAgent: new HttpAgent(), httpsAgent: new HttpsAgent() };
  const guard = { lookup: createResolverLookup(name_servers) };
  return {
    httpAgent: createGuardedAgent('http:', guard) as HttpAgent,
    httpsAgent: createGuardedAgent('https:', guard) as HttpsAgent,
  };
}

/** Next to the wire, before anything of the library reads the answer. */
function boundAnswers(client: S3Client): void {
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        const result = await next(args);
        const response = result.response as { statusCode: number; body: Readable };
        // A file of ours, of which whoever reads it knows how long it is.
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
  /** None of what is to be taken away in any case. */
  readonly signal?: AbortSignal;
  ask(signal: AbortSignal): Promise<Result>;
};

/** Ends when its time is over, whatever the store does. */
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

/** A private address has nothing to say that may pass: who named it is told, and no more than that. */
function toS3Error(error: unknown): unknown {
  if (error instanceof FarthingError) return error;
  if (isRefusal(error)) return notAllowed('the endpoint of S3 leads to an address that is not public');
  const { name = 'Error', code, $metadata } = error as S3Failure;
  const status = $metadata?.httpStatusCode;
  if (status !== undefined) return buildS3Error({ name, status, cause: error });
  return code === undefined ? error : unavailable(`S3 (${code})`, error);
}

/**
 * What S3 refuses it refuses again: the bucket, the credentials, what they may do. The rest may pass, and so does an upload that is not
 * there any more: another one is begun.
 */
function buildS3Error({ name, status, cause }: { name: string; status: number; cause?: unknown }): FarthingError {
  const mayPass = status < 400 || status >= 500 || status === 408 || status === 429 || name === 'NoSuchUpload';
  return mayPass ? unavailable(`S3 (${name}, ${status})`, cause) : notAllowed(`S3 refused it: ${name} (${status})`);
}
