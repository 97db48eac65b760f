/**
 * Files in S3, and in whatever speaks S3: an upload in parts, which nobody sees before it is completed. The library is loaded when it is
 * used. It connects to no private address, unless that is allowed: who names an endpoint is a tenant, and none of ours.
 */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { S3Client } from '@aws-sdk/client-s3';
import { RequestFilteringHttpAgent, RequestFilteringHttpsAgent } from 'request-filtering-agent';
import { FarthingError, notAllowed, unavailable } from '../../core/error.ts';
import type { ExportDestination, NewFile, WrittenFile } from './destination.ts';

export type S3Options = {
  readonly bucket: string;
  readonly region: string;
  readonly endpoint: string | null;
  readonly path_style: boolean;
  readonly encryption: 'AES256' | 'aws:kms' | 'aws:kms:dsse' | null;
  readonly credentials: { access_key_id: string; secret_access_key: string; session_token: string | null };
  readonly allow_private_addresses: boolean;
};

/** A part is held in memory until it is sent; S3 takes 10,000 of them, and none below 5 MiB but the last. */
const PART_BYTES = 8 * 1024 * 1024;

export function s3Destination(options: S3Options): ExportDestination {
  return {
    write: (file) => inWords(() => writeInParts(options, file)),
    linkTo: (key, seconds) => inWords(() => presigned(options, key, seconds)),
  };
}

async function writeInParts(options: S3Options, file: NewFile): Promise<WrittenFile> {
  const {
    AbortMultipartUploadCommand,
    CompleteMultipartUploadCommand,
    CreateMultipartUploadCommand,
    UploadPartCommand,
  } = await library();
  const client = await clientOf(options);
  const at = { Bucket: options.bucket, Key: file.key };
  const abort = async (UploadId: string) => {
    await client.send(new AbortMultipartUploadCommand({ ...at, UploadId })).catch(unlessGone);
  };
  if (file.begun !== null) await abort(file.begun);
  const encryption = options.encryption === null ? {} : { ServerSideEncryption: options.encryption };
  const { UploadId } = await client.send(
    new CreateMultipartUploadCommand({ ...at, ContentType: file.content_type, ...encryption }),
  );
  if (UploadId === undefined) throw unavailable('S3 (it gave an upload no id)');
  await file.onBegin(UploadId);
  const parts: { ETag: string | undefined; PartNumber: number }[] = [];
  try {
    for await (const Body of partsOf(file.bytes)) {
      const PartNumber = parts.length + 1;
      const sent = new UploadPartCommand({ ...at, UploadId, PartNumber, Body });
      const { ETag } = await client.send(sent, { abortSignal: file.signal });
      parts.push({ ETag, PartNumber });
    }
  } catch (error) {
    await abort(UploadId).catch(() => undefined);
    throw error;
  }
  return {
    url: `s3://${options.bucket}/${file.key}`,
    commit: () =>
      inWords(async () => {
        await client.send(new CompleteMultipartUploadCommand({ ...at, UploadId, MultipartUpload: { Parts: parts } }));
      }),
    discard: () => abort(UploadId),
  };
}

/** Pieces put together until they are as long as a part. */
async function* partsOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let [held, length]: [Uint8Array[], number] = [[], 0];
  for await (const piece of bytes) {
    held.push(piece);
    length += piece.length;
    if (length < PART_BYTES) continue;
    yield Buffer.concat(held);
    [held, length] = [[], 0];
  }
  // Also of a file that is shorter than a part, and of one without a byte.
  yield Buffer.concat(held);
}

async function presigned(options: S3Options, key: string, seconds: number): Promise<string> {
  const { GetObjectCommand } = await library();
  const { getSignedUrl } = await import('@aws-sdk/s3-request-presigner');
  const asked = new GetObjectCommand({ Bucket: options.bucket, Key: key });
  return getSignedUrl(await clientOf(options), asked, { expiresIn: seconds });
}

async function library() {
  try {
    return await import('@aws-sdk/client-s3');
  } catch (error) {
    throw new FarthingError('system_error', 'the library for S3 is not installed (@aws-sdk/client-s3)', {
      cause: error,
    });
  }
}

const TIMEOUTS = { connectionTimeout: 10_000, requestTimeout: 300_000 };

async function clientOf(options: S3Options): Promise<S3Client> {
  const { S3Client } = await library();
  const { access_key_id, secret_access_key, session_token } = options.credentials;
  const session = session_token === null ? {} : { sessionToken: session_token };
  return new S3Client({
    region: options.region,
    forcePathStyle: options.path_style,
    credentials: { accessKeyId: access_key_id, secretAccessKey: secret_access_key, ...session },
    ...(options.endpoint === null ? {} : { endpoint: options.endpoint }),
    // Not all that speaks S3 knows the newer checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    maxAttempts: 3,
    requestHandler: { ...TIMEOUTS, ...agentsFor(options) },
  });
}

function agentsFor({ allow_private_addresses }: S3Options) {
  if (allow_private_addresses) return { httpAgent: new HttpAgent(), httpsAgent: new HttpsAgent() };
  return { httpAgent: new RequestFilteringHttpAgent(), httpsAgent: new RequestFilteringHttpsAgent() };
}

type S3Failure = { name?: string; message?: string; $metadata?: { httpStatusCode?: number } };

function unlessGone(error: S3Failure): void {
  if (error.name !== 'NoSuchUpload' && error.$metadata?.httpStatusCode !== 404) throw error;
}

/** What S3 refuses it refuses again: the bucket, the credentials, what they may do. The rest may pass. */
async function inWords<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    const { name = 'Error', $metadata } = error as S3Failure;
    const status = $metadata?.httpStatusCode;
    if (status === undefined || error instanceof FarthingError) throw error;
    if (status >= 400 && status < 500 && status !== 408 && status !== 429)
      throw notAllowed(`S3 refused it: ${name} (${status})`);
    throw unavailable(`S3 (${name}, ${status})`);
  }
}
