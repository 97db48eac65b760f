/**
 * Export destination in S3 or an S3-compatible store: a multipart upload, which is invisible until it is completed. It
 * connects to no private address unless that is allowed, because the endpoint comes from a tenant.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { HeadObjectCommandOutput, S3Client } from '@aws-sdk/client-s3';
import { FarthingError, unavailable } from '../../core/foundation/error.ts';
import type { ExportDestination, NewFile, WrittenFile } from '../export-destination.ts';
import {
  createClient,
  loadS3Library,
  S3_TIMES,
  type S3Failure,
  type S3Options,
  type S3Times,
  withTimeout,
} from './client.ts';

/**
 * Size of a part, which is in memory until it is sent. S3 allows 10,000 parts of at least 5 MiB; the last one may be
 * smaller.
 */
const PART_BYTES = 8 * 1024 * 1024;

export function createS3Destination(options: S3Options): ExportDestination {
  return {
    write: (file) => writeMultipart(options, file),
    takeAway: async (key, { begun, is_named }) => {
      const store = await openObject(options, key);
      await store.abort(begun);
      if (is_named) await store.delete();
    },
    read: async (key, signal) => (await openObject(options, key)).read(signal),
    linkTo: (key, seconds) => presignUrl(options, key, seconds),
  };
}

type UploadedPart = { readonly ETag: string | undefined; readonly PartNumber: number };
/** An upload: its parts, and the mark by which the completed object is recognized. */
type S3Upload = {
  readonly UploadId: string;
  readonly mark: string;
  readonly parts: readonly UploadedPart[];
  readonly size: number;
};

async function writeMultipart(options: S3Options, file: NewFile): Promise<WrittenFile> {
  const store = await openObject(options, file.key);
  if (file.begun !== null) await store.abort(file.begun);
  const mark = randomBytes(16).toString('hex');
  const UploadId = await store.begin(file, mark);
  await file.onBegin(UploadId);
  const parts: UploadedPart[] = [];
  let size = 0;
  try {
    for await (const Body of splitIntoParts(file.bytes)) {
      parts.push(await store.send({ UploadId, PartNumber: parts.length + 1, Body, signal: file.signal }));
      size += Body.length;
    }
  } catch (error) {
    await store.abort(UploadId).catch(() => undefined);
    throw error;
  }
  return {
    url: `s3://${options.bucket}/${file.key}`,
    commit: () => store.complete({ UploadId, mark, parts, size }),
    discard: () => store.abort(UploadId),
  };
}

async function openObject(options: S3Options, key: string): Promise<S3Object> {
  return new S3Object(options, key, { client: await createClient(options), s3: await loadS3Library() });
}

type PartUpload = Pick<S3Upload, 'UploadId'> & { PartNumber: number; Body: Buffer; signal: AbortSignal };

/** One object and the requests for it. */
class S3Object {
  readonly #options: S3Options;
  readonly #times: S3Times;
  readonly #client: S3Client;
  readonly #library: Awaited<ReturnType<typeof loadS3Library>>;
  readonly #at: { readonly Bucket: string; readonly Key: string };

  constructor(
    options: S3Options,
    Key: string,
    known: { client: S3Client; s3: Awaited<ReturnType<typeof loadS3Library>> },
  ) {
    this.#options = options;
    this.#times = options.times ?? S3_TIMES;
    this.#client = known.client;
    this.#library = known.s3;
    this.#at = { Bucket: options.bucket, Key };
  }

  async begin({ content_type, signal }: NewFile, mark: string): Promise<string> {
    const { encryption } = this.#options;
    const created = new this.#library.CreateMultipartUploadCommand({
      ...this.#at,
      ContentType: content_type,
      Metadata: { [MARK]: mark },
      ...(encryption === null ? {} : { ServerSideEncryption: encryption }),
    });
    const ask = (abortSignal: AbortSignal) => this.#client.send(created, { abortSignal });
    const { UploadId } = await withTimeout({ ms: this.#times.plain, signal, ask });
    if (UploadId === undefined) throw unavailable('S3 (it gave an upload no id)');
    return UploadId;
  }

  async send({ signal, ...sent }: PartUpload): Promise<UploadedPart> {
    const part = new this.#library.UploadPartCommand({ ...this.#at, ...sent });
    const ask = (abortSignal: AbortSignal) => this.#client.send(part, { abortSignal });
    const { ETag } = await withTimeout({ ms: this.#times.part, signal, ask });
    return { ETag, PartNumber: sent.PartNumber };
  }

  /**
   * Completes the upload. It may be complete although the answer is an error or was lost, and a repeated request would
   * then find no upload. So the object itself is checked.
   */
  async complete(upload: S3Upload): Promise<void> {
    const { UploadId, parts } = upload;
    const MultipartUpload = { Parts: [...parts] };
    const command = new this.#library.CompleteMultipartUploadCommand({ ...this.#at, UploadId, MultipartUpload });
    const ask = (abortSignal: AbortSignal) => this.#client.send(command, { abortSignal });
    try {
      await withTimeout({ ms: this.#times.complete, ask });
    } catch (error) {
      const found = await this.#findObject().catch((unseen: Error) => {
        throw this.#mayBeThere(error, unseen);
      });
      if (found === null || !isUploadedObject(upload, found)) throw error;
    }
  }

  /** Reads the metadata of the object; null if there is none. Throws if the credentials may not read it. */
  #findObject(): Promise<HeadObjectCommandOutput | null> {
    const command = new this.#library.HeadObjectCommand(this.#at);
    const ask = (abortSignal: AbortSignal) =>
      this.#client.send(command, { abortSignal }).catch((error: S3Failure) => {
        if (error.$metadata?.httpStatusCode === 404) return null;
        throw error;
      });
    return withTimeout({ ms: this.#times.plain, ask });
  }

  /** Adds to the error of a failed completion that the file may exist nevertheless. */
  #mayBeThere(error: unknown, unseen: Error): unknown {
    if (!(error instanceof FarthingError)) return error;
    const { code, message, details, http_status_code } = error;
    const { Bucket, Key } = this.#at;
    const isRefused = unseen instanceof FarthingError && unseen.http_status_code < 500;
    const why = isRefused
      ? 'these credentials may not look (s3:GetObject)'
      : `asking after it failed: ${unseen.message}`;
    const text = `${message}; the file may be there all the same, whole, as s3://${Bucket}/${Key}: ${why}`;
    return new FarthingError(code, text, { details, http_status_code, cause: error });
  }

  /** Reads the object. The answer has no size limit, because the reader stops at the expected end. */
  async read(signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const command = new this.#library.GetObjectCommand(this.#at);
    const ask = (abortSignal: AbortSignal) => this.#client.send(command, { abortSignal }).catch(throwNotFound);
    const { Body } = await withTimeout({ ms: this.#times.plain, signal, ask });
    return Body as AsyncIterable<Uint8Array>;
  }

  async delete(): Promise<void> {
    const command = new this.#library.DeleteObjectCommand(this.#at);
    await withTimeout({ ms: this.#times.plain, ask: (abortSignal) => this.#client.send(command, { abortSignal }) });
  }

  /** Aborts the upload. It accepts no abort signal, because the upload must be removed in any case. */
  async abort(UploadId: string): Promise<void> {
    const command = new this.#library.AbortMultipartUploadCommand({ ...this.#at, UploadId });
    const ask = (abortSignal: AbortSignal) => this.#client.send(command, { abortSignal }).catch(ignoreMissingUpload);
    await withTimeout<unknown>({ ms: this.#times.plain, ask });
  }
}

const MARK = 'farthing-upload';

/**
 * Whether the object is this upload. It is recognized by its mark or, if the store drops metadata, by the checksum that S3 computes for
 * multipart uploads.
 */
function isUploadedObject(
  { mark, parts, size }: S3Upload,
  { ContentLength, ETag, Metadata }: HeadObjectCommandOutput,
): boolean {
  if (ContentLength !== size) return false;
  return Metadata?.[MARK] === mark || (ETag !== undefined && unquoteETag(ETag) === computeETag(parts));
}

function computeETag(parts: readonly UploadedPart[]): string {
  const sums = parts.map(({ ETag = '' }) => Buffer.from(unquoteETag(ETag), 'hex'));
  return `${createHash('md5').update(Buffer.concat(sums)).digest('hex')}-${parts.length}`;
}

function unquoteETag(ETag: string): string {
  return ETag.replaceAll('"', '');
}

/** Joins pieces until they have the length of a part. */
async function* splitIntoParts(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let [held, length]: [Uint8Array[], number] = [[], 0];
  for await (const piece of bytes) {
    held.push(piece);
    length += piece.length;
    if (length < PART_BYTES) continue;
    yield Buffer.concat(held);
    [held, length] = [[], 0];
  }
  // The last part is sent even if it is shorter than a part or empty.
  yield Buffer.concat(held);
}

async function presignUrl(options: S3Options, key: string, seconds: number): Promise<string> {
  const { GetObjectCommand } = await loadS3Library();
  const { getSignedUrl } = await import('@aws-sdk/s3-request-presigner');
  const command = new GetObjectCommand({ Bucket: options.bucket, Key: key });
  return getSignedUrl(await createClient(options), command, { expiresIn: seconds });
}

function throwNotFound(error: S3Failure): never {
  if (error.name === 'NoSuchKey') throw new FarthingError('not_found', 'the file is not there any more');
  throw error;
}

function ignoreMissingUpload(error: S3Failure): void {
  if (error.name !== 'NoSuchUpload' && error.$metadata?.httpStatusCode !== 404) throw error;
}
