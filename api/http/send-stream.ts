/**
 * Sends a file while it is being produced. An error before the first byte still returns an error status. A later failure breaks the
 * connection, so a file that ends in order is complete.
 */
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Context } from './route.ts';

type SentFile = {
  readonly type: string;
  readonly name: string;
  readonly zips: boolean;
  /** Absent while the file is being produced. */
  readonly size_bytes?: number;
};

export async function sendStream(bytes: Readable, file: SentFile, context: Context): Promise<void> {
  const { response, log } = context;
  await waitForFirstByte(bytes);
  setFileHeaders(response, file);
  try {
    await (file.zips ? pipeline(bytes, createGzip(), response) : pipeline(bytes, response));
  } catch (error) {
    response.destroy();
    const left = (error as { code?: string }).code === 'ERR_STREAM_PREMATURE_CLOSE';
    if (left) log.info('the caller left before the end of the export');
    else log.error({ err: error }, 'an export failed on the way');
  }
}

/** An empty file is readable at its end. */
async function waitForFirstByte(bytes: Readable): Promise<void> {
  if (bytes.errored) throw bytes.errored;
  // An error between this wait and the pipeline is thrown by the pipeline.
  bytes.on('error', () => {});
  if (bytes.readableLength === 0 && !bytes.readableEnded) await once(bytes, 'readable');
}

function setFileHeaders(response: Context['response'], { type, name, zips, size_bytes }: SentFile): void {
  response.status(200).type(type).vary('Accept-Encoding');
  response.set('Content-Disposition', `attachment; filename="${name}"`);
  if (zips) response.set('Content-Encoding', 'gzip');
  if (size_bytes !== undefined) response.set('Content-Length', String(size_bytes));
}

export function wantsGzip({ request }: Context): boolean {
  return request.acceptsEncodings('gzip') === 'gzip';
}

/**
 * Every browser sends a user agent that begins with Mozilla/, and no API client does. CSV for a browser gets a byte order mark, because a
 * person may open it in a spreadsheet.
 */
export function isBrowser({ request }: Context): boolean {
  return /^Mozilla\//.test(request.get('user-agent') ?? '');
}
